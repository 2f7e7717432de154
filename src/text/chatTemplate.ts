/**
 * Conversations to prompts, by the model's own Jinja template
 * (https://huggingface.co/docs/transformers/chat_templating).
 *
 * @module
 */

import { Environment, Interpreter, parse, tokenize } from "@huggingface/jinja";
import { HalftoneError, UnsupportedError, UsageError } from "../errors.ts";
import { strftime } from "./strftime.ts";

/** One turn of a conversation. Templates may read further fields (`tool_calls`, `name`, ...). */
export interface ChatMessage {
  /** `system`, `user`, `assistant`, `tool`. */
  readonly role: string;
  readonly content?: unknown;
  readonly [field: string]: unknown;
}

export interface ChatTemplateOptions {
  /** Ends the prompt where the assistant begins to speak. Default false, as in transformers. */
  readonly addGenerationPrompt?: boolean;
  /** Functions the model may call, as JSON schemas in OpenAI's form. */
  readonly tools?: readonly unknown[];
  readonly bosToken?: string;
  readonly eosToken?: string;
  /** What `strftime_now` reads; the present by default. */
  readonly now?: Date;
  /** Further variables of the template, e.g. `enable_thinking`. */
  readonly variables?: Readonly<Record<string, unknown>>;
}

const LONGEST_RANGE = 1_000_000;

/**
 * Renders a conversation with the model's template. Encode the result without `addSpecialTokens`: the
 * template writes the beginning-of-sequence token itself.
 *
 * @throws UsageError when there is no template, or when the template rejects the conversation
 * (`raise_exception`); UnsupportedError when the template itself fails.
 */
export function applyChatTemplate(
  template: string | undefined,
  messages: readonly ChatMessage[],
  options: ChatTemplateOptions = {},
): string {
  if (template === undefined) {
    throw new UsageError(
      "this model has no chat template (tokenizer_config.json or chat_template.jinja): " +
        "give it a plain prompt, or use an instruction-tuned model",
    );
  }
  if (messages.length === 0) throw new UsageError("the conversation has no message: give at least one");
  try {
    const program = parse(tokenize(template, { lstrip_blocks: true, trim_blocks: true }));
    const environment = createEnvironment(messages, options);
    return (new Interpreter(environment).run(program) as { value: string }).value;
  } catch (error) {
    if (error instanceof HalftoneError) throw error;
    const reason = error instanceof Error ? error.message : String(error);
    throw new UnsupportedError(`the chat template cannot be rendered: ${reason}; use a plain prompt`, {
      cause: error,
    });
  }
}

function createEnvironment(messages: readonly ChatMessage[], options: ChatTemplateOptions): Environment {
  const constants = { true: true, True: true, false: false, False: false, none: null, None: null };
  const variables: Record<string, unknown> = {
    ...constants,
    range: pythonRange,
    raise_exception(message: string) {
      throw new UsageError(`the chat template rejects this conversation: ${message}`);
    },
    strftime_now: (format: string) => strftime(options.now ?? new Date(), format),
    messages,
    tools: options.tools ?? null,
    documents: null,
    add_generation_prompt: options.addGenerationPrompt ?? false,
    ...(options.bosToken === undefined ? {} : { bos_token: options.bosToken }),
    ...(options.eosToken === undefined ? {} : { eos_token: options.eosToken }),
    ...options.variables,
  };
  const environment = new Environment();
  for (const [name, value] of Object.entries(variables)) environment.set(name, value);
  return environment;
}

/** Python's `range`, bounded because templates come from strangers. */
function pythonRange(start: number, stop?: number, step = 1): number[] {
  const [from, to] = stop === undefined ? [0, start] : [start, stop];
  const length = Math.max(0, Math.ceil((to - from) / step));
  if (!(length <= LONGEST_RANGE)) throw new Error(`range of ${length} values`);
  return Array.from({ length }, (_, i) => from + i * step);
}
