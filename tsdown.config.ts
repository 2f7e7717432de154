import { defineConfig } from "tsdown";
import { webWorkerSource } from "./src/backends/wasm/workers.ts";

// Dependencies stay imports; kernels and the worker's code are strings inside. The one file more is the worker's
// code for pages that may not run it from a blob.
export default defineConfig({
  entry: {
    browser: "src/browser.ts",
    node: "src/node.ts",
    "cli/main": "src/cli/main.ts",
    "quantize-worker": "src/engine/quantize/worker.node.ts",
  },
  format: "esm",
  platform: "neutral",
  target: "node20.19",
  external: [/^node:/],
  dts: { entry: ["src/browser.ts", "src/node.ts"] },
  hash: false,
  plugins: [
    {
      name: "worker",
      generateBundle() {
        this.emitFile({ type: "asset", fileName: "worker.js", source: webWorkerSource });
      },
    },
  ],
  outputOptions: { chunkFileNames: "chunks/[name].js" },
});
