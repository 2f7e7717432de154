/** The letter that byte-level BPE writes for each byte. */
export function byteLetters(): string[] {
  const printable = (byte: number) => (byte > 32 && byte < 127) || (byte > 160 && byte !== 173);
  let next = 256;
  return Array.from({ length: 256 }, (_, byte) => String.fromCharCode(printable(byte) ? byte : next++));
}
