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
  /** Without a text, the model is to compose one. */
  | { tool: "write_file"; name: string; text?: string; says?: undefined }
  | { tool: "remember"; text: string; says?: undefined }
  | { tool: "search_memory"; query: string; says: string }
  /** With `to`, after its text was written there. */
  | { tool: "delete_file"; name: string; to?: string; says?: undefined };

export const KINDS = [
  "none",
  "now",
  "run_javascript",
  "list_files",
  "read_file",
  "write_file",
  "remember",
  "search_memory",
  "delete_file",
] as const;
export type Kind = (typeof KINDS)[number];

export interface ToolCase {
  id: string;
  half: Half;
  kind: Kind;
  say: string;
  /** Null if no tool must be called. */
  wanted: Wanted | null;
}

const SHOPPING = "- flour\n- lemons\n- olive oil\n";
const OSLO = "The hotel is at Karl Johans gate 31.\nBring a warm coat.\n";
const SOUP = "Boil the leeks for twenty minutes.\n";
const NOTES =
  "# 2026-11-21\n\n- the plumber comes on Friday\n- The user says: my sister is called Clara\n- the boiler is in the cellar\n";
const CHORES = "- pay the rent\n- call the dentist\n";

const DENTIST_DONE = "- pay the rent\n- [x] call the dentist\n";
const RENT_DONE = "- [x] pay the rent\n- call the dentist\n";

/** The agent's workspace in every case, besides the files of a new agent. */
export const FILES: Readonly<Record<string, string>> = {
  "shopping-list.md": SHOPPING,
  "notes/oslo.md": OSLO,
  "recipes/pancakes.md": "Mix 200 g of flour, 3 eggs and 400 ml of milk. Fry in butter.\n",
  "recipes/soup.md": SOUP,
  "todo.md": CHORES,
  "memory/2026-11-21.md": NOTES,
};

/** What its memory has, near to any question. */
export const NOTED = [
  "the plumber comes on Friday",
  "The user says: my sister is called Clara",
  "the boiler is in the cellar",
];

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
  "Do you remember the first time we met?",
  "I always forget where I put my keys.",
  "How do I delete a file on my phone?",
  "What should I put on my list for the party?",
  "I wrote a note to my teacher.",
  "Remember me?",
  "Write a poem about a lost letter.",
  "Make me a list of three fruits.",
  "Can you write an email to my boss?",
  "Should I delete my old account?",
  "What do you like about me?",
  "Write a story about a man who forgets everything.",
  "It ended on a good note.",
  "Add a bit of salt to the soup and it is perfect.",
  "How can I save money?",
  "Tell me how to take good notes.",
  "Never mind, I found the file.",
  "What is the best way to remember names?",
  "Please write a short letter to my landlord.",
  "Put yourself in my place.",
  "Remove the stone from an avocado, how do I do that?",
  "I made a note of that.",
  "I forgot my umbrella.",
  "Clear skies today, at last!",
  "How do I rename a folder on my computer?",
  "Can you check my spelling?",
  "Mark is my best friend.",
  "Empty rooms make me sad.",
  "I cannot copy my brother's handwriting.",
  "Forget it.",
  "Forget about the rain, let us talk about the sea.",
  "She has ticked everything off her list.",
  "Copy machines are so loud.",
  "When does the shop close today?",
  "How much is it to rent 2 boats for 3 days?",
  "Undo that",
  "What did I just ask?",
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
  [
    "Save this recipe as tea.md:\nBoil the water.\nWait.",
    { tool: "write_file", name: "tea.md", text: "Boil the water.\nWait." },
  ],
  ["- Dune\n- Emma\n\nsave this as books.md", { tool: "write_file", name: "books.md", text: "- Dune\n- Emma" }],
  ["Add to my to-do list: buy stamps", { tool: "write_file", name: "todo.md", text: `${CHORES}- buy stamps\n` }],
  [
    "Replace the lemons with limes on the shopping list.",
    { tool: "write_file", name: "shopping-list.md", text: "- flour\n- limes\n- olive oil\n" },
  ],
  [
    "Create a file named guests.md with Anna, Ben and Carla.",
    { tool: "write_file", name: "guests.md", text: "Anna, Ben and Carla" },
  ],
  [
    "Save this in ideas.txt: a garden on the roof",
    { tool: "write_file", name: "ideas.txt", text: "a garden on the roof" },
  ],
  ["Write a file notes.md that says milk", { tool: "write_file", name: "notes.md", text: "milk" }],
  [
    'Can you save the sentence "The door code is 4711" to door.txt?',
    { tool: "write_file", name: "door.txt", text: "The door code is 4711" },
  ],
  [
    "Please create weekend.md containing: wash the car, mow the lawn",
    { tool: "write_file", name: "weekend.md", text: "wash the car, mow the lawn" },
  ],
  [
    "Make a new file called hello.txt with the text hello world",
    { tool: "write_file", name: "hello.txt", text: "hello world" },
  ],
  [
    "Store this as address.md: 12 Baker Street, London",
    { tool: "write_file", name: "address.md", text: "12 Baker Street, London" },
  ],
  [
    "I need a file packing.md that lists socks, shirts and a towel.",
    { tool: "write_file", name: "packing.md", text: "socks, shirts and a towel" },
  ],
  [
    "Write down the following in meeting.md: Anna leads, Bob takes notes",
    { tool: "write_file", name: "meeting.md", text: "Anna leads, Bob takes notes" },
  ],
  ["Write a poem about the sea and save it as sea.md.", { tool: "write_file", name: "sea.md" }],
  ["Save a haiku about autumn in poems/autumn.md", { tool: "write_file", name: "poems/autumn.md" }],
  ["Create a file joke.txt with a joke in it.", { tool: "write_file", name: "joke.txt" }],
  ["Draft a short letter to my aunt and put it into letter.md, please.", { tool: "write_file", name: "letter.md" }],
  ["Add butter to my shopping list.", { tool: "write_file", name: "shopping-list.md", text: `${SHOPPING}- butter\n` }],
  [
    "Put 'water the plants' on my to-do list.",
    { tool: "write_file", name: "todo.md", text: `${CHORES}- water the plants\n` },
  ],
  ["Please append 'Call Eva' to todo.md", { tool: "write_file", name: "todo.md", text: `${CHORES}- Call Eva\n` }],
  [
    "Can you add eggs and bread to shopping-list.md?",
    { tool: "write_file", name: "shopping-list.md", text: `${SHOPPING}- eggs\n- bread\n` },
  ],
  [
    "Write 'buy stamps' at the end of todo.md.",
    { tool: "write_file", name: "todo.md", text: `${CHORES}- buy stamps\n` },
  ],
  [
    "Take the lemons off my shopping list.",
    { tool: "write_file", name: "shopping-list.md", text: "- flour\n- olive oil\n" },
  ],
  ["Remove 'pay the rent' from todo.md", { tool: "write_file", name: "todo.md", text: "- call the dentist\n" }],
  ["Cross call the dentist off my to-do list", { tool: "write_file", name: "todo.md", text: "- pay the rent\n" }],
  ["Check off call the dentist on my to-do list.", { tool: "write_file", name: "todo.md", text: DENTIST_DONE }],
  ["Mark 'pay the rent' as done in todo.md", { tool: "write_file", name: "todo.md", text: RENT_DONE }],
  [
    "Tick off the lemons on my shopping list, please.",
    { tool: "write_file", name: "shopping-list.md", text: "- flour\n- [x] lemons\n- olive oil\n" },
  ],
  [
    "Mark flour as bought on my shopping list",
    { tool: "write_file", name: "shopping-list.md", text: "- [x] flour\n- lemons\n- olive oil\n" },
  ],
  ["Can you check call the dentist off my to-do list?", { tool: "write_file", name: "todo.md", text: DENTIST_DONE }],
  ["Mark pay the rent as done.", { tool: "write_file", name: "todo.md", text: RENT_DONE }],
  ["Clear my shopping list.", { tool: "write_file", name: "shopping-list.md", text: "" }],
  ["Empty my to-do list, please.", { tool: "write_file", name: "todo.md", text: "" }],
  ["Remove everything from my shopping list.", { tool: "write_file", name: "shopping-list.md", text: "" }],
  ["Delete all the items on my to-do list", { tool: "write_file", name: "todo.md", text: "" }],
  ["Copy todo.md to backup.md", { tool: "write_file", name: "backup.md", text: CHORES }],
  [
    "Make a copy of recipes/soup.md called recipes/leek-soup.md",
    { tool: "write_file", name: "recipes/leek-soup.md", text: SOUP },
  ],
  ["Duplicate my shopping list as old-list.md, please", { tool: "write_file", name: "old-list.md", text: SHOPPING }],
  ["Save a copy of todo.md as todo-old.md", { tool: "write_file", name: "todo-old.md", text: CHORES }],
  [
    "Forget that my sister is called Clara.",
    { tool: "write_file", name: "memory/2026-11-21.md", text: NOTES.replace(/.*Clara\n/, "") },
  ],
  [
    "Please forget what I told you about the plumber.",
    { tool: "write_file", name: "memory/2026-11-21.md", text: NOTES.replace(/.*plumber.*\n/, "") },
  ],
  [
    "Forget what you have noted about the boiler.",
    { tool: "write_file", name: "memory/2026-11-21.md", text: NOTES.replace(/.*boiler.*\n/, "") },
  ],
  [
    "You can forget that the plumber comes on Friday",
    { tool: "write_file", name: "memory/2026-11-21.md", text: NOTES.replace(/.*plumber.*\n/, "") },
  ],

  ["Remember that I prefer tea.", { tool: "remember", text: "I prefer tea" }],
  ["Please make a note: the plumber comes on Friday.", { tool: "remember", text: "the plumber comes on Friday" }],
  ["Note down that my flight leaves at 7.", { tool: "remember", text: "my flight leaves at 7" }],
  ["Put a reminder to call grandma in a note.", { tool: "remember", text: "call grandma" }],
  ["Remember: the code of the gate is 2580", { tool: "remember", text: "the code of the gate is 2580" }],
  ["Keep in mind that my name is Ana.", { tool: "remember", text: "my name is Ana" }],
  ["Don't forget that I am allergic to nuts!", { tool: "remember", text: "I am allergic to nuts" }],
  ["Can you remember that our office is in Leeds?", { tool: "remember", text: "our office is in Leeds" }],
  ["I want you to remember my birthday is on 3 May.", { tool: "remember", text: "my birthday is on 3 May" }],
  ["take a note: dentist on Tuesday at 3", { tool: "remember", text: "dentist on Tuesday at 3" }],
  [
    "Hi! Please note that the lift is out of order this week.",
    { tool: "remember", text: "the lift is out of order this week" },
  ],
  ["Write down that the key is under the flower pot.", { tool: "remember", text: "the key is under the flower pot" }],

  ["What did I tell you about the plumber?", { tool: "search_memory", query: "the plumber", says: "on Friday" }],
  ["What do you remember about my sister?", { tool: "search_memory", query: "my sister", says: "Clara" }],
  ["Search your memory for the boiler.", { tool: "search_memory", query: "the boiler", says: "in the cellar" }],
  [
    "Do you still know what I said about the plumber?",
    { tool: "search_memory", query: "the plumber", says: "on Friday" },
  ],
  ["Have you noted anything about the boiler?", { tool: "search_memory", query: "the boiler", says: "in the cellar" }],
  ["What do you know about my sister?", { tool: "search_memory", query: "my sister", says: "Clara" }],
  ["What have I told you about the boiler?", { tool: "search_memory", query: "the boiler", says: "in the cellar" }],
  ["Is there anything in your notes about my sister?", { tool: "search_memory", query: "my sister", says: "Clara" }],

  ["Delete todo.md.", { tool: "delete_file", name: "todo.md" }],
  ["Please remove the file notes/oslo.md", { tool: "delete_file", name: "notes/oslo.md" }],
  ["Delete my shopping list.", { tool: "delete_file", name: "shopping-list.md" }],
  ["Could you get rid of recipes/soup.md?", { tool: "delete_file", name: "recipes/soup.md" }],
  ["Erase my notes about Oslo.", { tool: "delete_file", name: "notes/oslo.md" }],
  ["remove the pancake recipe", { tool: "delete_file", name: "recipes/pancakes.md" }],
  ["Rename todo.md to chores.md.", { tool: "delete_file", name: "todo.md", to: "chores.md" }],
  [
    "Please rename my shopping list to groceries.md",
    { tool: "delete_file", name: "shopping-list.md", to: "groceries.md" },
  ],
  [
    "Can you rename notes/oslo.md to notes/norway.md?",
    { tool: "delete_file", name: "notes/oslo.md", to: "notes/norway.md" },
  ],
  ["Change the name of todo.md to tasks.md", { tool: "delete_file", name: "todo.md", to: "tasks.md" }],
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
