import { createInterface, type Interface } from "node:readline";
import { HalftoneError } from "../errors.ts";
import type { ChatMessage } from "../text/chatTemplate.ts";

export interface ReplOptions {
  readonly input: NodeJS.ReadableStream;
  readonly output: NodeJS.WritableStream;
  /** Prompts, line editing and Ctrl-C, for people. */
  readonly terminal: boolean;
  readonly greeting: string;
  readonly system?: string;
  readonly answer: (messages: readonly ChatMessage[], signal: AbortSignal) => AsyncIterable<string>;
}

const HELP = `/reset  forget the conversation
/help   this list
/exit   leave (also Ctrl-D, or Ctrl-C at the empty prompt)
Ctrl-C stops an answer; the arrow keys bring back what you wrote.
`;

/** Reads lines and answers them until the input ends or the reader leaves. */
export async function repl(options: ReplOptions): Promise<void> {
  const { input, output, terminal, system, answer } = options;
  const beginning: ChatMessage[] = system === undefined ? [] : [{ role: "system", content: system }];
  let messages = [...beginning];
  let answering: AbortController | undefined;
  const lines = createInterface({ input, output: terminal ? output : undefined, terminal, prompt: "> " });
  let left = false;
  lines.on("close", () => {
    left = true;
    // Ctrl-D at a terminal; a pipe that ends has only asked its last question.
    if (terminal) answering?.abort();
  });
  lines.on("SIGINT", () => {
    if (answering) answering.abort();
    else if (lines.line === "") lines.close();
    else clearLine(lines);
  });
  const say = (text: string) => void output.write(text);
  const ask = () => {
    if (terminal && !left) lines.prompt();
  };
  const reply = async (content: string) => {
    answering = new AbortController();
    let text = "";
    try {
      for await (const piece of answer([...messages, { role: "user", content }], answering.signal)) {
        text += piece;
        say(piece);
      }
      // An answer that was stopped stands as far as it came.
      if (text) messages.push({ role: "user", content }, { role: "assistant", content: text });
    } catch (error) {
      if (!(error instanceof HalftoneError)) throw error;
      say(`${error.message} (/reset forgets the conversation)`);
    } finally {
      if (!text.endsWith("\n")) say("\n");
      answering = undefined;
    }
  };

  if (terminal) say(`${options.greeting}\n`);
  ask();
  for await (const typed of lines) {
    const line = typed.trim();
    if (line === "/exit" || (terminal && left)) break;
    if (line === "/reset") {
      messages = [...beginning];
      if (terminal) say("The conversation is forgotten.\n");
    } else if (line === "/help") say(HELP);
    else if (/^\/\w*$/.test(line)) say(`There is no command ${line}; /help lists them.\n`);
    else if (line !== "") await reply(line);
    ask();
  }
  lines.close();
  if (terminal) say("\n");
}

function clearLine(lines: Interface): void {
  lines.write(null, { ctrl: true, name: "e" });
  lines.write(null, { ctrl: true, name: "u" });
}
