{{- /* What Kubernetes changes of the shipped configuration: the queue is on disk. */ -}}
{{- define "otelcol-ml.gateway.changes" -}}
{{- $config := .Files.Get "files/gateway.yaml" | fromYaml -}}
extensions:
  # What the back ends have not accepted survives a restart or a kill.
  file_storage/queue:
    directory: ${env:OTELCOL_ML_QUEUE_DIR}
    create_directory: true
    # Moves a damaged file away and starts an empty queue.
    recreate: true
    # Of each signal's file. Like a full disk, this limit loses data, so it is four
    # times queue_size.
    max_size: 1073741824
    compaction:
      directory: ${env:OTELCOL_ML_QUEUE_DIR}
      on_start: true
      on_rebound: true
      cleanup_on_start: true
exporters:
  {{- range $exporter := list "otlp_grpc/jaeger" "otlp_grpc/logs" }}
  {{ $exporter }}:
    sending_queue:
      storage: file_storage/queue
      queue_size: 268435456
    retry_on_failure:
      # Data waits for the back end as long as the queue has room.
      max_elapsed_time: 0s
  {{- end }}
service:
  extensions: {{ append $config.service.extensions "file_storage/queue" | toJson }}
{{- end -}}

{{- define "otelcol-ml.gateway.configuration" -}}
{{- include "otelcol-ml.configuration" (dict "root" . "part" "gateway" "file" "gateway.yaml" "changes" (include "otelcol-ml.gateway.changes" .)) -}}
{{- end -}}

{{- define "otelcol-ml.gateway.env" -}}
{{- $url := .Values.backends.remoteWriteURL -}}
{{ include "otelcol-ml.receiverEnv" . }}
- {name: OTELCOL_ML_QUEUE_DIR, value: /state/queue}
{{- if $url }}
- {name: METRICS_EXPORTER, value: prometheus_remote_write}
- {name: REMOTE_WRITE_URL, value: {{ $url | quote }}}
{{- else }}
- {name: PROMETHEUS_ENDPOINT, value: "0.0.0.0:8889"}
{{- end }}
{{ include "otelcol-ml.backendEnv" . }}
{{- end -}}
