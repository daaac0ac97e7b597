import { afterAll, expect, test } from "bun:test";
import { type Case, halfOf, type Persona, readPersonas } from "../../eval/cases.ts";
import { judge, NEAR_ENOUGH, type Rule } from "../../eval/rules.ts";
import { never, openLocalEngine } from "../models/local-setting.ts";

const personas = readPersonas();
const cases = personas.flatMap((persona) => persona.conversations.flat().map((asked) => ({ persona, asked })));

const librarian: Persona = {
  name: "Odile",
  soul: "You are a warm librarian. Answer in two sentences.",
  language: "en",
  voice: ["book", "library"],
  length: { sentences: 2 },
  conversations: [],
};
const baker: Persona = { ...librarian, name: "Greta", language: "de", voice: ["Brot"] };
const asked: Case = { id: "a", kind: "advice", say: "What should I read on a train?", like: ["A novel."] };
const broken = (text: string, change: Partial<Case> = {}, persona = librarian, nearness = 1): Rule[] =>
  judge({ ...asked, ...change }, persona, { text, instructions: persona.soul ?? "", nearness });

test.each<[Rule, string, Partial<Case>]>([
  ["echo", "What should I read on a train?", {}],
  ["echo", "You ask what should I read on a train.", {}],
  ["leak", "Read a book. Answer in two sentences.", {}],
  ["leak", "# First conversation\n\nThis is the book that I love.", {}],
  ["loop", "This is a good book. This is a good book.", {}],
  ["speaker", "Read a book.\nUser: And then?", {}],
  ["says", "I am Elena, and I love to read.", { says: ["Odile"] }],
  ["gives", "Just read what feels right to you.", { gives: "novel myster" }],
  ["refuses", "I recommend a book, but I'm not sure which one.", {}],
  ["refuses", "First, don't take anything for granted.", {}],
  ["stray", "I recommend a book about the history of the internet.", {}],
  ["role", "I recommend a good novel, Odile.", {}],
  ["role", "I'm not a librarian, but I like novels.", {}],
  ["role", "My roses are sad, and so am I.", { say: "My roses look sad. What can I do?" }],
  ["past", "I have been keeping these shelves for over 20 years.", { kind: "itself", say: "Who are you?" }],
  ["past", "I was born in a town by the sea.", { kind: "itself", say: "Who are you?" }],
  ["voice", "I would take a nap, and have a look out of the window.", { voice: true }],
  ["length", "Read a novel. It is good for you. It is long and slow.", {}],
  ["length", "It is hard for me to say that in one word.", { words: 1 }],
  ["length", "It was a dark night.", { least: 40 }],
  ["length", "", {}],
  ["whole", "I would read a novel on the train, and then I", {}],
  ["language", "Ich habe ein Buch für dich, und das ist gut.", {}],
])("%s is found in: %s", (rule, text, change) => {
  expect(broken(text, change)).toContain(rule);
});

test("an answer in another language than the persona's breaks a rule, and one in its own does not", () => {
  expect(broken("I am glad that you are here.", {}, baker)).toContain("language");
  expect(broken("Ich habe ein Brot für dich, und das ist gut.", {}, baker)).toEqual([]);
});

test("an answer that is close to no reference is off topic", () => {
  expect(broken("I would take a novel.", {}, librarian, NEAR_ENOUGH - 0.01)).toEqual(["topic"]);
});

test.each<[string, Partial<Case>]>([
  ["I would take a good novel with you. It makes the hours short.", {}],
  ["My name is Odile, and I keep the library.", { says: ["Odile"], voice: true }],
  ["Fish!", { words: 1 }],
  ["Mysteries are short enough for that.", { gives: "novel myster" }],
  ["Choose a shoe that fits.", { gives: "walk shoes" }],
  ["The history of the internet is a long one.", { say: "Tell me about the internet." }],
  ["I am Odile, and I would take a novel.", {}],
  ["Bonjour", { language: "any" }],
  ["I grew up in this library.", { kind: "itself", say: "Tell me how you grew up." }],
  ["I have read novels for twenty years.", {}],
  ["On a train I always read a book.", { voice: true }],
  ["On a train I always read a book. (smiling)", {}],
  ["Dear Tom,\n\nRead a novel.\n\nBest regards,\nOdile", {}],
  ["Could you please leave me alone.", {}],
])("nothing is found in: %s", (text, change) => {
  expect(broken(text, change)).toEqual([]);
});

test("each reference names what its answer must name, and breaks none of the rules about sense", () => {
  const found = cases.flatMap(({ persona, asked }) =>
    asked.like.map((text) => ({ text, rules: judge(asked, persona, { text, instructions: "", nearness: 1 }) })),
  );
  const aboutSense: readonly Rule[] = ["gives", "refuses", "stray", "role", "past"];
  expect(found.filter(({ rules }) => rules.some((rule) => aboutSense.includes(rule)))).toEqual([]);
});

test("there are twelve personas and at least 120 cases, each with its own id, a third or more of them held out", () => {
  expect(personas).toHaveLength(12);
  expect(cases.length).toBeGreaterThanOrEqual(120);
  expect(new Set(cases.map(({ asked }) => asked.id)).size).toBe(cases.length);
  const held = personas
    .flatMap(({ conversations }) => conversations)
    .filter((one) => halfOf(one) === "held")
    .flat();
  expect(held.length / cases.length).toBeGreaterThan(1 / 3);
  expect(held.length / cases.length).toBeLessThan(0.6);
});

const { engine, close } = openLocalEngine();
afterAll(close);

test("the required closeness accepts references for their own case, and rejects them for others", async () => {
  const vectors: Float32Array[][] = [];
  for (const { asked } of cases) vectors.push(await engine.embed(asked.like, never));
  const cosine = (a: Float32Array, b: Float32Array) => a.reduce((sum, value, at) => sum + value * (b[at] ?? 0), 0);
  const nearest = (text: Float32Array, good: Float32Array[]) => Math.max(...good.map((one) => cosine(text, one)));
  const passing = (values: number[]) => values.filter((value) => value >= NEAR_ENOUGH).length / values.length;
  const own = vectors.flatMap((group) =>
    group.map((one) =>
      nearest(
        one,
        group.filter((other) => other !== one),
      ),
    ),
  );
  const others = vectors.flatMap((group, at) =>
    vectors.flatMap((strangers, of) => {
      const [one, other] = [cases[at], cases[of]];
      const apart = one?.persona.language === other?.persona.language && one?.asked.kind !== other?.asked.kind;
      return apart ? strangers.map((stranger) => nearest(stranger, group)) : [];
    }),
  );
  expect(passing(own)).toBeGreaterThan(0.9);
  expect(passing(others)).toBeLessThan(0.07);
});
