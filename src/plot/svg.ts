/**
 * SVG as text.
 *
 * @module
 */

type Attributes = Readonly<Record<string, string | number | undefined>>;

/** `<name attributes>children</name>`; children are markup, texts go through {@link escapeText}. */
export function element(name: string, attributes: Attributes, ...children: readonly string[]): string {
  const written = Object.entries(attributes)
    .filter(([, value]) => value !== undefined)
    .map(
      ([key, value]) => ` ${key}="${typeof value === "number" ? short(value) : escapeText(String(value))}"`,
    )
    .join("");
  return children.length === 0 ? `<${name}${written}/>` : `<${name}${written}>${children.join("")}</${name}>`;
}

export function textElement(content: string, attributes: Attributes): string {
  return element("text", attributes, escapeText(content));
}

function escapeText(text: string): string {
  const entities: Record<string, string> = { "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" };
  return text.replace(/[&<>"]/g, (character) => entities[character]);
}

/** A tenth of a pixel is enough. */
export function short(value: number): string {
  return String(Math.round(value * 10) / 10);
}
