// Work in short turns, between which the browser draws and answers the reader.

// budget is how many milliseconds a turn may take before the next begins.
const budget = 10;

const nextFrame = () => new Promise((done) => requestAnimationFrame(done));
const nextTurn = () => new Promise((done) => setTimeout(done));

// inTurns returns a function that runs the steps, from the next frame on. Called
// meanwhile, it runs them once more afterwards. A step that fails is reported, and
// the others are run.
export function inTurns(steps) {
  let running = false;
  let again = false;
  const run = async () => {
    while (again) {
      again = false;
      await nextFrame();
      let start = performance.now();
      for (const step of attempt(steps) || []) {
        attempt(step);
        if (performance.now() - start < budget) continue;
        await nextTurn();
        start = performance.now();
      }
    }
    running = false;
  };
  return () => {
    if (document.hidden) return;
    again = true;
    if (running) return;
    running = true;
    void run();
  };
}

// attempt returns what the function returns, or reports why it failed.
function attempt(f) {
  try {
    return f();
  } catch (e) {
    reportError(e);
    return undefined;
  }
}
