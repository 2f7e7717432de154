import { readFile } from "node:fs/promises";
import { expect, test } from "vitest";
import { verbHelp } from "../../src/cli/help.ts";
import { parseArguments } from "../../src/cli/parse.ts";
import { verbs } from "../../src/cli/verbs.ts";

const file = new URL("../../docs/cli.md", import.meta.url);

/** A section from its heading to the next; undefined when there is none. */
function sectionOf(document: string, verb: string): string | undefined {
  return new RegExp(`^## ${verb}\\n.*?(?=^## |(?![^]))`, "ms").exec(document)?.[0];
}

test("every verb has a section that ends with its --help; `vitest run test/cli/docs.test.ts --update` renews them", async () => {
  const document = await readFile(file, "utf8");
  let renewed = document;
  for (const verb of verbs) {
    const section = sectionOf(document, verb.name);
    expect(section, `docs/cli.md has no section "## ${verb.name}"`).toBeDefined();
    const help = `\`\`\`text\n${verbHelp(verb)}\`\`\``;
    expect(section).toMatch(/^```text$/m);
    renewed = renewed.replace(
      section!,
      section!.replace(/^```text\n.*?^```$/ms, () => help),
    );
  }
  const headings = document.match(/^## .*$/gm)!.map((line) => line.slice(3));
  expect(headings.slice(1).toSorted()).toEqual(verbs.map(({ name }) => name).toSorted());
  await expect(renewed).toMatchFileSnapshot(file.pathname);
});

test("the examples are valid commands", async () => {
  const document = await readFile(file, "utf8");
  const blocks = [...document.matchAll(/^```sh\n(.*?)^```$/gms)].map((match) => match[1]);
  const lines = [...blocks.join("").split("\n"), ...verbs.map(({ example }) => example)];
  const commands = lines.flatMap((line) => /halftone (.*)$/.exec(line)?.[1] ?? []);
  expect(commands.length).toBeGreaterThan(2 * verbs.length);
  for (const command of commands) {
    const [name, ...args] = [...command.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2]);
    const verb = verbs.find((each) => each.name === name);
    expect(verb, command).toBeDefined();
    expect(() => parseArguments(verb!, args, {}), command).not.toThrow();
  }
});
