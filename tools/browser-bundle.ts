/**
 * Bundles the browser entry with everything it imports, as an application's bundler would, and says what it weighs:
 * `node tools/browser-bundle.ts [FOLDER]`.
 *
 * @module
 */
import { globSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";
import { build } from "tsdown";
import { webWorkerSource } from "../src/backends/wasm/workers.ts";

export interface BrowserBundle {
  /** Modules that went in, by path. */
  readonly modules: readonly string[];
  /** What the bundle still imports from elsewhere; a browser would not find it. */
  readonly external: readonly string[];
}

/** Writes `halftone.js`, the chunks it loads on demand, and `worker.js` into `folder`. */
export async function bundleForBrowser(folder: string): Promise<BrowserBundle> {
  const root = fileURLToPath(new URL("..", import.meta.url));
  const [{ chunks }] = await build({
    config: false,
    cwd: root,
    entry: { halftone: "src/browser.ts" },
    outDir: folder,
    format: "esm",
    platform: "browser",
    target: "es2022",
    minify: true,
    dts: false,
    hash: false,
    clean: false,
    deps: { alwaysBundle: [/./], onlyBundle: false },
    outExtensions: () => ({ js: ".js" }),
    logLevel: "silent",
  });
  writeFileSync(join(folder, "worker.js"), webWorkerSource);
  const code = chunks.filter((chunk) => chunk.type === "chunk");
  const own = new Set(code.map((chunk) => chunk.fileName));
  return {
    modules: code.flatMap((chunk) => Object.keys(chunk.modules)),
    external: code
      .flatMap((chunk) => [...chunk.imports, ...chunk.dynamicImports])
      .filter((name) => !own.has(name)),
  };
}

if (import.meta.main) {
  const folder = process.argv[2] ?? ".halftone/browser";
  const { external } = await bundleForBrowser(folder);
  for (const file of globSync("**/*.js", { cwd: folder }).sort()) {
    const bytes = readFileSync(join(folder, file));
    console.log(`${file}  ${bytes.length} bytes, ${gzipSync(bytes).length} gzipped`);
  }
  if (external.length > 0) throw new Error(`not bundled: ${external.join(", ")}`);
}
