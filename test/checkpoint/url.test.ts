import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { load, openCheckpoint } from "../../src/browser.ts";
import { blobFiles, blobSource } from "../../src/checkpoint/blob.ts";
import { buildHeader } from "../../src/checkpoint/safetensors/header.ts";
import { openUrl, urlFiles } from "../../src/checkpoint/url.ts";
import { CheckpointError, HalftoneError, UsageError } from "../../src/errors.ts";

/** Five windows and a bit. */
const bytes = Uint8Array.from({ length: 5 * 2 ** 22 + 1234 }, (_, i) => (i * 7 + (i >>> 12)) & 255);

/** Faster than an assertion on millions of elements. */
const same = (a: Uint8Array, b: Uint8Array) => Buffer.compare(a, b) === 0;

type Answer = (request: IncomingMessage, response: ServerResponse) => void;

async function serve(answer: Answer): Promise<{ url: string; requests: IncomingMessage[] }> {
  const requests: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    requests.push(request);
    answer(request, response);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`, requests };
}

/** Answers ranges of `content`. */
function ranged(content: Uint8Array, headers: Record<string, string> = {}): Answer {
  return (request, response) => {
    if (request.method === "HEAD")
      return void response.writeHead(200, { "content-length": content.length }).end();
    const [, from, to] = /^bytes=(\d+)-(\d+)$/.exec(request.headers.range!)!.map(Number);
    if (from >= content.length) return void response.writeHead(416).end();
    const part = content.subarray(from, to + 1);
    const range = `bytes ${from}-${from + part.length - 1}/${content.length}`;
    response.writeHead(206, { "content-range": range, ...headers }).end(part);
  };
}

test("ranges come in windows, each fetched once, the next ahead of its use", async () => {
  const { url, requests } = await serve(ranged(bytes));
  const source = (await openUrl(`${url}a.bin`))!;
  expect(source.size).toBe(bytes.length);
  for (const [offset, length] of [
    [3, 100],
    [2 ** 22 - 50, 100],
    [0, bytes.length],
    [bytes.length - 10, 10],
    [bytes.length, 0],
  ]) {
    expect(same(await source.read(offset, length), bytes.subarray(offset, offset + length))).toBe(true);
  }
  const shared = new Uint8Array(new SharedArrayBuffer(8));
  await source.read(2 ** 22 + 1, 8, shared);
  expect([...shared]).toEqual([...bytes.subarray(2 ** 22 + 1, 2 ** 22 + 9)]);
  await expect(source.read(bytes.length - 1, 2)).rejects.toThrow(CheckpointError);
  // Six windows, and the second once more: four are kept.
  expect(requests.length).toBeLessThanOrEqual(8);
  await source.close();
  await expect(source.read(0, 1)).rejects.toThrow(/closed/);
});

test("a server that ignores Range sends the file once", async () => {
  const { url, requests } = await serve((_, response) => void response.end(bytes));
  const source = (await openUrl(url))!;
  expect(same(await source.read(2 ** 23, 2 ** 22), bytes.subarray(2 ** 23, 2 ** 23 + 2 ** 22))).toBe(true);
  expect(requests).toHaveLength(1);
});

test("the size of a server that hides Content-Range is asked for by HEAD; an empty file is empty", async () => {
  const { url, requests } = await serve(ranged(bytes.subarray(0, 99), { "content-range": "" }));
  const source = (await openUrl(url))!;
  expect([source.size, (await source.read(9, 90)).length]).toEqual([99, 90]);
  expect(requests.map(({ method }) => method)).toEqual(["GET", "HEAD"]);
  const empty = await serve(ranged(new Uint8Array(0)));
  expect((await openUrl(empty.url))?.size).toBe(0);
});

test.each([
  [404, undefined],
  [410, undefined],
  [401, /refuses access \(401\); give a token/],
  [403, /refuses access \(403\)/],
  [500, /answered 500/],
])("status %i", async (status, message) => {
  const { url } = await serve((_, response) => void response.writeHead(status).end());
  if (message === undefined) return expect(await openUrl(url)).toBeUndefined();
  await expect(openUrl(url)).rejects.toThrow(message);
  await expect(openUrl(url)).rejects.toThrow(HalftoneError);
});

test("changed, short and unreachable files are told apart", async () => {
  let content = bytes;
  const { url } = await serve((request, response) => ranged(content)(request, response));
  const source = (await openUrl(url))!;
  content = bytes.subarray(0, 2 ** 22 + 5);
  await expect(source.read(2 ** 22, 9)).rejects.toThrow(/has 4194309 bytes now/);
  content = bytes;
  expect((await source.read(2 ** 22, 9)).length).toBe(9);

  const short = await serve((_, response) => {
    response.writeHead(206, { "content-range": "bytes 0-9/10" }).end(bytes.subarray(0, 4));
  });
  await expect(openUrl(short.url)).rejects.toThrow(/10 bytes asked for, 4 came/);
  await expect(openUrl("http://127.0.0.1:1/")).rejects.toThrow(/cannot be fetched .*CORS/);
  const stopped = AbortSignal.abort(new Error("enough"));
  await expect(openUrl(url, { signal: stopped })).rejects.toThrow("enough");
});

test("a set keeps the query; what a storage service hides, and an app's page, is a file that is not there", async () => {
  const { url, requests } = await serve(({ url: path }, response) => {
    if (path!.includes("page")) return void response.setHeader("content-type", "text/html").end("<p>");
    response.writeHead(path!.startsWith("/m/config.json") ? 200 : 403).end("{}");
  });
  const files = urlFiles(`${url}m?key=1`, { headers: { authorization: "Bearer x" } });
  await expect(files.open("model.safetensors")).rejects.toThrow(UsageError);
  expect(await files.open("config.json")).toBeDefined();
  expect(await files.open("model.safetensors")).toBeUndefined();
  expect(await files.open("onnx/page")).toBeUndefined();
  expect(requests.at(-1)).toMatchObject({
    url: "/m/onnx/page?key=1",
    headers: { authorization: "Bearer x" },
  });
});

test("a model opens from a folder's URL, from a file's, from picked files", async () => {
  const model: Record<string, Uint8Array> = {
    "/m/config.json": new TextEncoder().encode("{}"),
    "/m/model.safetensors": buildHeader([]).bytes,
  };
  const { url } = await serve((request, response) => {
    const content = model[request.url!];
    if (content === undefined) return void response.writeHead(404).end();
    ranged(content)(request, response);
  });
  for (const address of [`${url}m`, `${url}m/`, `${url}m/model.safetensors`]) {
    const checkpoint = await openCheckpoint(address);
    expect([checkpoint.format, checkpoint.source]).toEqual(["safetensors", address]);
    await checkpoint.close();
  }
  const picked = Object.entries(model).map(([name, content]) => {
    const file = new File([Uint8Array.from(content)], name.slice(3));
    return Object.assign(file, { webkitRelativePath: name.slice(1) });
  });
  expect((await openCheckpoint(picked)).format).toBe("safetensors");
  await expect(openCheckpoint(`${url}none`)).rejects.toThrow(/none\/ is no model: no config\.json/);
  await expect(openCheckpoint(`${url}none.gguf`)).rejects.toThrow(/no file none\.gguf/);
  await expect(load("no address")).rejects.toThrow(/no URL/);
  await expect(load("ftp://host/model")).rejects.toThrow(/no http address/);
});

test("picked files: folders, ranges, names", async () => {
  const source = blobSource(new Blob([bytes.subarray(0, 100)]), "b");
  expect(await source.read(10, 5)).toEqual(bytes.slice(10, 15));
  await expect(source.read(96, 5)).rejects.toThrow(CheckpointError);
  const file = (path: string) =>
    Object.assign(new File([], path.split("/").at(-1)!), { webkitRelativePath: path });
  const files = blobFiles([file("top/config.json"), file("top/onnx/model.onnx"), file("top/onnx/data")]);
  expect([await files.list(), await files.list("onnx")]).toEqual([
    ["config.json", "onnx"],
    ["data", "model.onnx"],
  ]);
  expect((await files.open("onnx/model.onnx"))?.name).toBe("onnx/model.onnx");
  expect(() => blobFiles([new Blob([])])).toThrow(UsageError);
  expect(() => blobFiles([new File([], "a"), new File([], "a")])).toThrow(/two files named a/);
});
