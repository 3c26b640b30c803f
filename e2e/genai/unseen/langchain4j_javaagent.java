// LangChain4j, below which OpenTelemetry's agent for Java instruments the client of HTTP.

// requires: dev.langchain4j:langchain4j:1.19.0
// requires: dev.langchain4j:langchain4j-open-ai:1.19.0
// requires: org.slf4j:slf4j-nop:2.0.16
// requires: io.opentelemetry.javaagent:opentelemetry-javaagent:2.31.1

import dev.langchain4j.agent.tool.P;
import dev.langchain4j.agent.tool.Tool;
import dev.langchain4j.model.chat.response.ChatResponse;
import dev.langchain4j.model.chat.response.StreamingChatResponseHandler;
import dev.langchain4j.model.openai.OpenAiChatModel;
import dev.langchain4j.model.openai.OpenAiEmbeddingModel;
import dev.langchain4j.model.openai.OpenAiStreamingChatModel;
import dev.langchain4j.service.AiServices;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;

public class Langchain4j {
  static final String QUESTION = "why is the sky blue and not green at noon";
  static final String URL = System.getenv("MODEL_URL") + "/v1";

  interface Assistant { String chat(String question); }

  static class Tools {
    @Tool("Says what the weather is.")
    public String weather(@P("city") String city) { return "it rains in " + city; }
  }

  static OpenAiChatModel model(String name, int retries) {
    return OpenAiChatModel.builder().baseUrl(URL).apiKey("not-needed").modelName(name).maxRetries(retries).build();
  }

  static void step(String name, ThrowingRunnable ask) throws InterruptedException {
    try { ask.run(); System.err.println(name + ": ok"); } catch (Throwable e) { System.err.println(name + ": " + e); }
    Thread.sleep(100);
  }

  interface ThrowingRunnable { void run() throws Exception; }

  static void stream(String name) throws Exception {
    CompletableFuture<ChatResponse> done = new CompletableFuture<>();
    OpenAiStreamingChatModel.builder().baseUrl(URL).apiKey("not-needed").modelName(name).build().chat(QUESTION, new StreamingChatResponseHandler() {
      public void onPartialResponse(String part) {}
      public void onCompleteResponse(ChatResponse response) { done.complete(response); }
      public void onError(Throwable error) { done.completeExceptionally(error); }
    });
    done.get(20, TimeUnit.SECONDS);
  }

  public static void main(String[] args) throws Exception {
    step("plain", () -> model("tiny-1", 0).chat(QUESTION));
    step("plain again", () -> model("tiny-1", 0).chat(QUESTION));
    step("cached", () -> model("tiny-cached", 0).chat(QUESTION));
    step("tool", () -> AiServices.builder(Assistant.class).chatModel(model("tiny-1", 0)).tools(new Tools()).build().chat(QUESTION));
    step("embed", () -> OpenAiEmbeddingModel.builder().baseUrl(URL).apiKey("not-needed").modelName("tiny-embed").maxRetries(0).build().embed(QUESTION));
    step("500", () -> model("tiny-broken", 0).chat(QUESTION));
    step("429", () -> model("tiny-limited", 0).chat(QUESTION));
    step("429 and again", () -> model("tiny-busy", 2).chat(QUESTION));
    step("stream", () -> stream("tiny-1"));
    step("stream 500", () -> stream("tiny-broken"));
    step("stream cut", () -> stream("tiny-cut"));
  }
}
