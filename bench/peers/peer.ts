/** An engine with a model loaded, fed token by token. */
export interface Session {
  readonly name: string;
  readonly threads: number;
  /** Bytes of the model's file or files. */
  readonly bytes: number;
  /** Reads `prompt` tokens from an empty cache, then decodes `decode` more; tokens per second of each. */
  measure(prompt: number, decode: number): Promise<Speed>;
  close(): Promise<void>;
}

export interface Speed {
  readonly prefill: number;
  readonly decode: number;
}

/** Token ids whose values do not matter to the time. */
export function tokenId(position: number, vocabulary: number): number {
  return (position * 7919 + 1) % vocabulary;
}
