/**
 * The committed cases of the embedded model's tools: what a person says, and the call that is right. A third of them need
 * no tool; those were written to look as if they did.
 */
import { HALVES, type Half } from "../cases.ts";

/** The right call; `says` are words that its answer must contain, as it is shown to the person. */
export type Wanted =
  | { tool: "now"; timeZone: string; says?: undefined }
  | { tool: "run_javascript"; result: number; says: string }
  | { tool: "list_files"; folder?: string; says: string }
  | { tool: "read_file"; name: string; says: string }
  /** Without a name, any new one will do. */
  | { tool: "write_file"; name?: string; text: string; says?: undefined };

export const KINDS = ["none", "now", "run_javascript", "list_files", "read_file", "write_file"] as const;
export type Kind = (typeof KINDS)[number];

export interface ToolCase {
  id: string;
  half: Half;
  kind: Kind;
  say: string;
  /** Null if no tool must be called. */
  wanted: Wanted | null;
}

/** The agent's workspace in every case, besides the files of a new agent. */
export const FILES: Readonly<Record<string, string>> = {
  "shopping-list.md": "- flour\n- lemons\n- olive oil\n",
  "notes/oslo.md": "The hotel is at Karl Johans gate 31.\nBring a warm coat.\n",
  "recipes/pancakes.md": "Mix 200 g of flour, 3 eggs and 400 ml of milk. Fry in butter.\n",
  "recipes/soup.md": "Boil the leeks for twenty minutes.\n",
  "todo.md": "- pay the rent\n- call the dentist\n",
};

const NONE = [
  "Good morning! How was your day?",
  "What should I do on a rainy day?",
  "I have two cats and three dogs.",
  "It took me 3 hours to read 200 pages yesterday.",
  "What time of the year do you like best?",
  "Write me a poem about time.",
  "Do you think 13 is an unlucky number?",
  "How do I keep my documents in order?",
  'Translate "What time is it?" into Spanish.',
  "Thank you, that was all for today.",
  "What makes a good shopping list?",
  "Tell me a story about a lost notebook.",
  "I was born in 1984 and moved here in 2009.",
  "Which day of the week is your favourite?",
  "Can you explain what a file is?",
  "Is it ever too late to learn the piano?",
  "What is your name?",
  "My train leaves at 9 and arrives at 12.",
  "Should I write a diary?",
  "How do people learn multiplication?",
  "What are you going to do tomorrow?",
  "Yesterday was my birthday.",
];

const WANTED: readonly [say: string, wanted: Wanted][] = [
  ["What day is it today?", { tool: "now", timeZone: "UTC" }],
  ["What time is it?", { tool: "now", timeZone: "UTC" }],
  ["Can you tell me today's date?", { tool: "now", timeZone: "UTC" }],
  ["Which month are we in?", { tool: "now", timeZone: "UTC" }],
  ["Do you know what time it is in Tokyo right now?", { tool: "now", timeZone: "Asia/Tokyo" }],
  ["Is it Monday or Tuesday today?", { tool: "now", timeZone: "UTC" }],
  ["hey, what's the date", { tool: "now", timeZone: "UTC" }],
  ["What year is it?", { tool: "now", timeZone: "UTC" }],
  ["Hello Ada! Could you please tell me the time in New York?", { tool: "now", timeZone: "America/New_York" }],
  ["I lost track. What weekday is today?", { tool: "now", timeZone: "UTC" }],
  ["Which day of the week is tomorrow?", { tool: "now", timeZone: "UTC" }],
  ["Tell me yesterday's date.", { tool: "now", timeZone: "UTC" }],

  ["What is 17 times 23?", { tool: "run_javascript", result: 391, says: "391" }],
  ["12.5 + 7.25 = ?", { tool: "run_javascript", result: 19.75, says: "19.75" }],
  ["How much is 15 % of 80?", { tool: "run_javascript", result: 12, says: "12" }],
  ["Please divide 144 by 12.", { tool: "run_javascript", result: 12, says: "12" }],
  ["Calculate (12 + 8) * 4.", { tool: "run_javascript", result: 80, says: "80" }],
  ["What do you get if you subtract 38 from 100?", { tool: "run_javascript", result: 62, says: "62" }],
  [
    "I buy 6 tickets for 14 euros each. How much do I pay in total?",
    { tool: "run_javascript", result: 84, says: "84" },
  ],
  ["What's nine multiplied by seven?", { tool: "run_javascript", result: 63, says: "63" }],
  ["Add up 120, 35 and 45.", { tool: "run_javascript", result: 200, says: "200" }],
  [
    "We are 4 people and the bill is 92. How much does each of us pay?",
    { tool: "run_javascript", result: 23, says: "23" },
  ],

  ["Which files do you have?", { tool: "list_files", says: "notes/oslo.md" }],
  ["Show me a list of your files.", { tool: "list_files", says: "notes/oslo.md" }],
  ["What is in your workspace?", { tool: "list_files", says: "notes/oslo.md" }],
  ["What documents are stored here?", { tool: "list_files", says: "notes/oslo.md" }],
  ["List everything in the folder recipes.", { tool: "list_files", folder: "recipes", says: "recipes/soup.md" }],
  ["Do you have any files saved?", { tool: "list_files", says: "notes/oslo.md" }],

  ["What does shopping-list.md say?", { tool: "read_file", name: "shopping-list.md", says: "olive oil" }],
  ["Read notes/oslo.md to me, please.", { tool: "read_file", name: "notes/oslo.md", says: "Karl Johans gate 31" }],
  ["Open todo.md.", { tool: "read_file", name: "todo.md", says: "call the dentist" }],
  ["What is on my shopping list?", { tool: "read_file", name: "shopping-list.md", says: "olive oil" }],
  [
    "Show me the recipe for pancakes from your files.",
    { tool: "read_file", name: "recipes/pancakes.md", says: "3 eggs" },
  ],
  ["Can you read me my notes about Oslo?", { tool: "read_file", name: "notes/oslo.md", says: "Karl Johans gate 31" }],
  ["What have I got on my to-do list?", { tool: "read_file", name: "todo.md", says: "call the dentist" }],
  ["Show me what is in recipes/soup.md", { tool: "read_file", name: "recipes/soup.md", says: "leeks" }],

  ["Write 'Buy milk' into a file called milk.md.", { tool: "write_file", name: "milk.md", text: "Buy milk" }],
  ["Please make a note: the plumber comes on Friday.", { tool: "write_file", text: "the plumber comes on Friday" }],
  [
    "Save this in ideas.txt: a garden on the roof",
    { tool: "write_file", name: "ideas.txt", text: "a garden on the roof" },
  ],
  ["Note down that my flight leaves at 7.", { tool: "write_file", text: "my flight leaves at 7" }],
  [
    "Create a file named guests.md with Anna, Ben and Carla.",
    { tool: "write_file", name: "guests.md", text: "Anna, Ben and Carla" },
  ],
  ["Put a reminder to call grandma in a note.", { tool: "write_file", text: "call grandma" }],
];

/** Every second case of a kind is held out. */
export const TOOL_CASES: readonly ToolCase[] = KINDS.flatMap((kind) => {
  const own: [string, Wanted | null][] =
    kind === "none"
      ? NONE.map((say) => [say, null])
      : WANTED.filter(([, { tool }]) => tool === kind).map((one) => [...one]);
  return own.map(([say, wanted], at) => {
    return { id: `${kind}/${at + 1}`, half: HALVES[at % 2] ?? "tuning", kind, say, wanted };
  });
});
