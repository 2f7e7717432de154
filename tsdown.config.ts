import { defineConfig } from "tsdown";

// Dependencies stay imports; kernels and the worker's code are strings inside, so dist needs no other file.
export default defineConfig({
  entry: { index: "src/index.ts", node: "src/node.ts", "cli/main": "src/cli/main.ts" },
  format: "esm",
  platform: "neutral",
  target: "node20.19",
  external: [/^node:/],
  dts: { entry: ["src/index.ts", "src/node.ts"] },
  hash: false,
  outputOptions: { chunkFileNames: "chunks/[name].js" },
});
