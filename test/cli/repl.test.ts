import { PassThrough } from "node:stream";
import { expect, test } from "vitest";
import { repl } from "../../src/cli/repl.ts";
import { UsageError } from "../../src/errors.ts";
import type { ChatMessage } from "../../src/text/chatTemplate.ts";

interface Session {
  readonly asked: (readonly ChatMessage[])[];
  readonly output: () => string;
  /** Waits until the output holds a text, and forgets what came before its end. */
  readonly see: (text: string) => Promise<void>;
  readonly type: (keys: string) => void;
  readonly ended: Promise<void>;
}

type Answer = (messages: readonly ChatMessage[], signal: AbortSignal) => AsyncIterable<string>;

async function* echo(messages: readonly ChatMessage[]): AsyncIterable<string> {
  yield `you said ${messages.at(-1)!.content}`;
}

/** Goes on until it is stopped. */
async function* endless(_: unknown, signal: AbortSignal): AsyncIterable<string> {
  yield "once";
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
}

function session(terminal: boolean, answer: Answer, system?: string): Session {
  const [input, stream] = [new PassThrough(), new PassThrough()];
  const asked: (readonly ChatMessage[])[] = [];
  let [text, seen] = ["", 0];
  stream.setEncoding("utf8").on("data", (piece: string) => {
    text += piece;
  });
  const ended = repl({
    input,
    output: stream,
    terminal,
    greeting: "Welcome.",
    system,
    answer(messages, signal) {
      asked.push(messages);
      return answer(messages, signal);
    },
  });
  return {
    asked,
    ended,
    output: () => text,
    async see(wanted) {
      while (!text.includes(wanted, seen)) await new Promise((resolve) => setTimeout(resolve, 5));
      seen = text.indexOf(wanted, seen) + wanted.length;
    },
    type: (keys) => (keys === "" ? input.end() : input.write(keys)),
  };
}

test("piped lines are answered in turn, the conversation kept until /reset", async () => {
  const { asked, type, output, ended } = session(false, echo, "Be brief.");
  type("one\n\n  two\n/reset\nthree");
  type("");
  await ended;
  expect(output()).toBe("you said one\nyou said two\nyou said three\n");
  const system = { role: "system", content: "Be brief." };
  expect(asked.map((messages) => messages.map(({ content }) => content))).toEqual([
    ["Be brief.", "one"],
    ["Be brief.", "one", "you said one", "two"],
    ["Be brief.", "three"],
  ]);
  expect(asked[2][0]).toEqual(system);
});

test("Ctrl-C stops the answer and not the program; what came of it stays in the conversation", async () => {
  let answer: Answer = endless;
  const chat = session(true, (...args) => answer(...args));
  await chat.see("Welcome.");
  await chat.see("> ");
  chat.type("tell\r");
  await chat.see("once");
  chat.type("\u0003");
  await chat.see("> ");
  answer = echo;
  chat.type("more\r");
  await chat.see("you said more");
  await chat.see("> ");
  expect(chat.asked[1].map(({ content }) => content)).toEqual(["tell", "once", "more"]);
  chat.type("\u001b[A\r");
  await chat.see("you said more");
  await chat.see("> ");
  chat.type("half a line");
  await chat.see("half a line");
  chat.type("\u0003");
  await chat.see("> ");
  chat.type("\u0003");
  await chat.ended;
  expect(chat.asked.length).toBe(3);
});

test("Ctrl-D leaves, during an answer too", async () => {
  const idle = session(true, echo);
  await idle.see("> ");
  idle.type("\u0004");
  await idle.ended;
  const busy = session(true, endless);
  await busy.see("> ");
  busy.type("tell\r");
  await busy.see("once");
  busy.type("\u0004");
  await busy.ended;
});

test("an answer that cannot be given leaves the conversation as it was", async () => {
  let fails = true;
  const chat = session(false, (messages) => {
    if (fails) throw new UsageError("the prompt is too long");
    return echo(messages);
  });
  chat.type("one\n");
  await chat.see("too long (/reset forgets the conversation)\n");
  fails = false;
  chat.type("two\n/exit\nthree\n");
  await chat.ended;
  expect(chat.asked.map((messages) => messages.length)).toEqual([1, 1]);
});

test("a defect is not swallowed", async () => {
  const chat = session(false, () => {
    throw new TypeError("defect");
  });
  chat.type("one\n");
  await expect(chat.ended).rejects.toThrow(TypeError);
});
