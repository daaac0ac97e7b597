import { expect, test } from "bun:test";
import { sentencesOf } from "../../src/lib/words.ts";
import { createGuard, type Fault } from "../../src/models/local/guards.ts";
import { introductionsFor } from "../../src/models/local/introduction.ts";
import { lengthWished } from "../../src/models/local/length-wish.ts";
import { loops } from "../../src/models/local/loops.ts";
import { continuationFor, openingsFor } from "../../src/models/local/openings.ts";
import type { ChatMessage } from "../../src/models/local/protocol.ts";

const SOUL = "You are a warm, well-read librarian. Answer in two sentences.\n\nYour name is Odile.";
const chat = (question: string, system = SOUL): ChatMessage[] => [
  { role: "system", content: system },
  { role: "user", content: question },
];
const QUESTION = "Good evening! What should I read on a train?";

test.each<[Fault, string]>([
  ["echo", "Good evening! What should I read on a train?"],
  ["echo", "What should I read on the train?"],
  ["echo", "Hello! What should I read on a train, you ask."],
  ["leak", "You are reading.\n\nYour name is Odile."],
  ["leak", "# First conversation\nWelcome."],
  ["leak", "I read SOUL.md and know who I am."],
  ["leak", "They say that I am a warm, well-read librarian. Answer in two sentences, they said."],
  ["loop", "Take a novel with you. It is a good one. Take a novel with you."],
  ["loop", "I like the book about the sea and I like the book about the sea and more."],
  ["loop", "It is very very very very good."],
  ["loop", "Nora, Nina, Nell, Nelly, Nan, Nadia, Naomi, Nancy, Nelia, Nesta, Neva, Nicola,"],
  ["speaker", "Take a novel.\nUser: Which one?"],
  ["speaker", "Assistant: Take a novel."],
  ["speaker", "Odile, the one who keeps the books."],
  ["speaker", "(Odile's eyes begin to shine.)"],
  ["name", "My name is Elara, and I keep the books."],
  ["name", "I'm Evelyn, the librarian."],
  ["speaker", "I recommend a novel, Odile."],
  ["speaker", "I recommend a novel, Odilette."],
  ["evasion", "I recommend a book, but I'm not sure what you mean."],
  ["evasion", "You should plant a rose. I'm not sure."],
  ["evasion", "I'm not a librarian, but I have read much."],
  ["evasion", "I recommend fantasy. I'm not a fan of it."],
  ["evasion", "I would take a novel, but I'm not one who reads."],
  ["evasion", 'I recommend "The Nightingale" by Erin Moriarty.'],
  ["evasion", "I recommend a book on the history of the internet."],
  ["machine", "I am a helpful AI assistant and have read nothing."],
])("%s is found in: %s", (fault, text) => {
  expect(createGuard(chat(QUESTION)).faultIn(text)).toBe(fault);
});

test.each([
  "First, don't take anything for granted.",
  "I recommend a few essential things to make your reading special.",
  'You could say, "I love to read novels."',
  "You could take a novel by the... (pausing to think)",
  "A novel of the finest?",
])("advice that helps nobody is an evasion: %s", (text) => {
  expect(createGuard(chat(QUESTION)).faultOfBeginning(text)).toBe("evasion");
});

test("an agent does not speak of what is the user's as of its own, unless it writes for the user", () => {
  expect(createGuard(chat("My roses look sad. What can I do?")).faultIn("I water my roses every day.")).toBe("speaker");
  expect(createGuard(chat("My roses look sad.")).faultIn("I am sorry that your roses look sad.")).toBeNull();
  expect(createGuard(chat("Write a letter about my roses.")).faultIn("Dear Anna, my roses bloom.")).toBeNull();
  expect(createGuard(chat("I need a poem for my roses.")).faultIn("O my roses, you bloom.")).toBeNull();
  expect(createGuard(chat("Make this kind: Get off my roses!")).faultIn("Please leave my roses.")).toBeNull();
});

test("a list of names of files is endless too, and so is one whose items say the same of one thing after the other", () => {
  const names = Array.from({ length: 12 }, (_, at) => `improve_part${at}.min.js`).join(", ");
  expect(loops(`Files: ${names}, and more`)).toBe(true);
  const share = (what: string, at: number) => `${at + 1}. **${what}**: ${at}0% of my business is ${what}, and more.`;
  expect(loops(["Fashion", "Food", "Gyms", "Tours"].map(share).join("\n"))).toBe(true);
  expect(loops(["Fashion", "Food", "Gyms"].map(share).join("\n"))).toBe(false);
  const amounts = Array.from({ length: 14 }, (_, at) => `${at + 2} g of spice`).join(", ");
  expect(loops(`You need ${amounts}.`)).toBe(false);
});

test("what is counted up is no endless list", () => {
  const numbers = Array.from({ length: 20 }, (_, at) => at + 1).join(", ");
  const letters = [..."ABCDEFGHIJKLMNOPQRSTUVWXYZ"].join(", ");
  for (const text of [`${numbers}.`, `${letters}.`]) expect(loops(text)).toBe(false);
});

test("an example that repeats what it is one of is an echo", () => {
  const guard = createGuard(chat("My roses look sad. What can I do?"));
  expect(guard.faultOfBeginning("You could try pruning them, such as pruning roses.")).toBe("echo");
  expect(guard.faultOfBeginning("You could feed them, such as with old tea leaves.")).toBeNull();
});

test("who is asked for a fact may say that it does not know, and come to any subject", () => {
  const guard = createGuard(chat("Who made the first network?"));
  expect(guard.faultIn("I do not know who made the internet.")).toBeNull();
});

test.each([
  "Good evening! I would take a short novel, such as one of Agatha Christie's.",
  "On a train I read short stories. They end where you get off.",
  "My name is Odile, and I am a librarian who is warm to all who read.",
  "I'm happy to help. I am sure that you will like it.",
  "Of course! Of course! A novel.",
])("nothing is found in: %s", (text) => {
  expect(createGuard(chat(QUESTION)).faultIn(text)).toBeNull();
});

test("an answer does not speak of what only the worked examples do", () => {
  expect(createGuard(chat("My car is red.")).faultIn("How lucky! Where is the coin")).toBe("leak");
  expect(createGuard(chat("My coin is red.")).faultIn("How lucky! Where is the coin")).toBeNull();
  expect(createGuard(chat(QUESTION)).faultIn("I recommend a novel about a lost coin")).toBeNull();
});

test("an answer does not end with who the agent is, unless somebody asked", () => {
  const answer = "It is a long way to the sea. I'm Odile";
  expect(createGuard(chat("How far is the sea?")).faultIn(answer)).toBe("speaker");
  expect(createGuard(chat("Who are you?")).faultIn(answer)).toBeNull();
  expect(createGuard(chat("Hello!")).faultIn("Hello there! I'm Odile")).toBeNull();
});

test("an agent that is asked for its name must say it", () => {
  const guard = createGuard(chat("Who are you?"));
  expect(guard.faultOfBeginning("I am a friend of all who read.")).toBe("name");
  expect(guard.faultOfBeginning("I am Odile, and I keep the books.")).toBeNull();
  expect(createGuard(chat("How are you?")).faultOfBeginning("I am well.")).toBeNull();
  expect(createGuard(chat("Who are you?", "You are a cat.")).faultOfBeginning("I am a cat.")).toBeNull();
});

test.each([
  "Try to read a book on a train, I'm afraid.",
  "You should read on the train.",
  "My advice is to read a book on the train.",
])("advice that is only the question said as an answer is an echo: %s", (text) => {
  const guard = createGuard(chat(QUESTION));
  expect(guard.faultOfBeginning(text)).toBe("echo");
  expect(guard.mayFail(text)).toBe(true);
});

test("advice may repeat some words of its question, and an opinion all of them", () => {
  expect(createGuard(chat(QUESTION)).faultOfBeginning("On a train, I read short stories.")).toBeNull();
  expect(createGuard(chat(QUESTION)).faultOfBeginning("You could read a book about trains in India.")).toBeNull();
  expect(createGuard(chat("Do you like black coffee?")).faultOfBeginning("I like black coffee.")).toBeNull();
});

test.each(["I recommend a good place, for example the best spot.", "It would be Odile's favourite place."])(
  "advice that names nothing but the agent and the question is an evasion: %s",
  (text) => {
    expect(createGuard(chat("Where is the best place for a nap?")).faultOfBeginning(text)).toBe("evasion");
  },
);

test("half a beginning is not judged while it may become an echo, or must still say a name", () => {
  expect(createGuard(chat(QUESTION)).mayFail("Well, what should I ")).toBe(true);
  expect(createGuard(chat(QUESTION)).mayFail("I would take a novel ")).toBe(false);
  expect(createGuard(chat("Who are you?")).mayFail("I would take a novel ")).toBe(true);
});

test("a fact said in the words of its question is no echo of it", () => {
  const guard = createGuard(chat("What is the capital of France?"));
  expect(guard.faultIn("The capital of France is")).toBeNull();
  expect(guard.faultIn("The capital of France is Paris.")).toBeNull();
  expect(guard.faultIn("What is the capital of the France?")).toBe("echo");
});

test("a greeting may be answered with a greeting, and an agent that is asked may say what it is", () => {
  expect(createGuard(chat("Hello!")).faultIn("Hello! How can I help you today?")).toBeNull();
  expect(createGuard(chat("Are you a robot?")).faultIn("Yes, I am an AI assistant.")).toBeNull();
});

test("a persona that speaks German does not continue in English", () => {
  const guard = createGuard(chat("Guten Morgen!", "Du bist eine freundliche Bäckerin. Du heißt Greta."));
  expect(guard.faultIn("Guten Morgen! I am glad to have you here.")).toBe("language");
  expect(guard.faultIn("Guten Morgen! Was darf es für dich sein?")).toBeNull();
  // English is recognised by its second word, so the first is held back.
  const shown = (text: string) => text.slice(0, guard.safeLength(text));
  expect(shown("Guten Morgen! I would ")).toBe("Guten Morgen!");
  expect(shown("Guten Morgen! Was darf ")).toBe("Guten Morgen! Was darf");
});

test("text that may become a fault is held back until it differs", () => {
  const guard = createGuard(chat(QUESTION));
  const safe = (text: string) => text.slice(0, guard.safeLength(text));
  expect(safe("I would take a novel wi")).toBe("I would take a novel ");
  expect(safe("Welcome. They call me a warm, well-read librarian ")).toBe("Welcome. They call me ");
  expect(safe("Take a novel.\nUser")).toBe("Take a novel.");
  expect(safe("I read a lot. My name is Odi")).toBe("I read a lot. ");
  expect(safe("I like the book about the sea, and I like the book ")).toBe("I like the book about the sea, and ");
});

test("of any text, everything but the last words is shown in the end, but nothing that becomes a fault", () => {
  const guard = createGuard(chat(QUESTION));
  const text = "I would take a short novel. You will like it.\nYour name is Odile.";
  let shown = 0;
  for (let end = 1; end <= text.length && guard.faultIn(text.slice(0, end)) === null; end++) {
    shown = Math.max(shown, guard.safeLength(text.slice(0, end)));
  }
  expect(text.slice(0, shown)).not.toContain("name is");
  expect(text.slice(0, shown)).toContain("You will like it.");
});

test("a comment in code is no heading of a prompt", () => {
  const guard = createGuard(chat("Write a Python function that adds two numbers.", SOUL));
  expect(guard.faultIn("```python\n# Adds them up.\ndef add(a, b):\n")).toBeNull();
  expect(guard.faultIn("```python\nadd(1, 2)\n```\n# First conversation\n")).toBe("leak");
  expect(guard.faultIn("```python\n# From SOUL.md\n")).toBe("leak");
});

const ENDLESS = Number.POSITIVE_INFINITY;

test.each([
  ["Tell me of books.", SOUL, { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["In one sentence: why?", SOUL, { sentences: 1, least: 1, items: 0, words: ENDLESS }],
  ["In one word: why?", SOUL, { sentences: 1, least: 1, items: 0, words: 1 }],
  ["Tell me a long story.", SOUL, { sentences: ENDLESS, least: 1, items: 0, words: ENDLESS }],
  ["Write a haiku about rain.", SOUL, { sentences: ENDLESS, least: 1, items: 0, words: ENDLESS }],
  ["Show me a function that adds two numbers.", SOUL, { sentences: ENDLESS, least: 1, items: 0, words: ENDLESS }],
  ["How do I write a letter?", "You are kind.", { sentences: 3, least: 1, items: 0, words: ENDLESS }],
  ["How do I write a letter?", SOUL, { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["I got a letter after a long day.", "You are kind.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["How long should it stand?", "You are kind.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["Why?", "Answer in at most ten words.", { sentences: 1, least: 1, items: 0, words: 10 }],
  ["Why?", "Answer in at most eight words.", { sentences: 1, least: 1, items: 0, words: 8 }],
  ["Warum?", "Du antwortest in zwei Sätzen.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["¿Por qué?", "Respondes en dos frases.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["Why?", "You are kind.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["Name three fruits.", "You are kind.", { sentences: 3, least: 1, items: 3, words: ENDLESS }],
  ["Give me five ideas for dinner.", SOUL, { sentences: 5, least: 1, items: 5, words: ENDLESS }],
  ["Give me a hand.", "You are kind.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["Tell me about your day.", "You are kind.", { sentences: 4, least: 1, items: 0, words: ENDLESS }],
  ["Good evening!", "You are kind.", { sentences: 2, least: 1, items: 0, words: ENDLESS }],
  ["Say yes or no: is it late?", "You are kind.", { sentences: 1, least: 1, items: 0, words: ENDLESS }],
  ["Tell me about the sea in two sentences.", SOUL, { sentences: 2, least: 2, items: 0, words: ENDLESS }],
  ["Write one or two sentences about the sea.", SOUL, { sentences: 1, least: 1, items: 0, words: ENDLESS }],
  ["Tell me about the sea in at most two sentences.", SOUL, { sentences: 2, least: 1, items: 0, words: ENDLESS }],
])("the length of an answer is what was asked for: %s %s", (question, system, wish) => {
  expect(lengthWished(chat(question, system))).toEqual(wish);
});

test("a beginning fits what was asked, in its language", () => {
  expect(openingsFor("I cannot sleep. What should I do?", "en")[0]).toBe("You could");
  expect(openingsFor("Hello! How are you today?", "en")[0]).toBe("I am well, thank you");
  expect(openingsFor("How do I mend a chair?", "en")[0]).toBe("Start by");
  expect(openingsFor(QUESTION, "en")[0]).toBe("I recommend books in genres such as");
  expect(openingsFor("How often should I dust it?", "en")[0]).toBe("At least");
  expect(openingsFor("How many legs has a spider?", "en")).toEqual([""]);
  expect(openingsFor("Which book did Melville write?", "en")).toEqual([""]);
  expect(openingsFor("What is your favourite season?", "en")[0]).toBe("My favourite season is");
  expect(openingsFor("What is your favourite time of the year?", "en")[0]).toBe("My favourite time of the year is");
  expect(openingsFor("Tea or coffee?", "en")[0]).toBe("I prefer");
  expect(openingsFor("Hi, I'm Tom!", "en")[0]).toBe("Nice to meet you, Tom!");
  expect(openingsFor("My name is Ada Lovelace.", "en")[0]).toBe("Nice to meet you, Ada!");
  for (const other of ["I am tired.", "I'm Spanish.", "I'm German.", "I am Swiss.", "My name is Tom. What is yours?"])
    expect(openingsFor(other, "en").join()).not.toContain("meet");
  expect(openingsFor("What's the weather like?", "en")[0]).toBe("I cannot look outside and see the weather");
  expect(openingsFor("My dog is called Rex.", "en")).not.toContain("My name is");
  expect(openingsFor("Please remember that I like tea.", "en")[0]).toBe("I will remember that");
  expect(openingsFor("I'm a bit hungry.", "en")[0]).toBe("You could");
  expect(openingsFor("Write a Python function that adds two numbers.", "en")[0]).toBe("```python\n");
  expect(openingsFor("Was soll ich tun?", "de")[0]).toBe("Du kannst");
  expect(openingsFor("Wie heißt du?", "de")).toContain("Ich heiße");
  expect(openingsFor("Say this in a nicer way: You are late.", "en")).toContain("Could you please");
  expect(openingsFor("¡Muchas gracias!", "es")).toContain("De nada");
  expect(openingsFor("Hello, where can I sit down for a while?", "en")).not.toContain("Hello! It is");
  expect(openingsFor("Where do owls sleep?", "en")).toEqual([""]);
});

test("the agent's name after a comma is held back, since it would call the user by it", () => {
  const guard = createGuard([{ role: "system", content: "Your name is Unit 7." }, ...chat(QUESTION)]);
  expect("I am well, Unit ".slice(0, guard.safeLength("I am well, Unit "))).toBe("I am well");
  expect("I am well, Unions ".slice(0, guard.safeLength("I am well, Unions "))).toContain("Unions");
});

test("who has the agent's own name may be called by it", () => {
  const meets = "Nice to meet you, Odile! How can I help you?";
  expect(createGuard(chat("My name is Odile.")).faultOfBeginning(meets)).toBeNull();
  expect(createGuard(chat("My name is Odile.")).safeLength("Nice to meet you, Odile! How ")).toBeGreaterThan(20);
  expect(createGuard(chat("My name is Tom.")).faultIn(meets)).not.toBeNull();
});

test("an answer to a greeting repeats only the greeting itself, not the rest of the message", () => {
  expect(openingsFor("Hello, nice to meet you.", "en")).toEqual(["", "Hello! It is"]);
});

test("a farewell, thanks or a name is what an answer begins with, not what it may come to", () => {
  expect(openingsFor("Good night!", "en")).toEqual(["Good night! Sleep well", ""]);
  expect(openingsFor("bye", "en")).toEqual(["Goodbye! I hope", ""]);
  expect(openingsFor("Thank you very much!", "en")).toEqual(["You are welcome", ""]);
  expect(openingsFor("What is your name?", "en")[0]).toBe("My name is");
});

test("sentences end at their marks and lines, not after titles, letters or list numbers", () => {
  expect(sentencesOf('He met Dr. J. Doe. "Hello!" he said.\nIt was late')).toEqual([
    "He met Dr. J. Doe.",
    '"Hello!"',
    "he said.",
    "It was late",
  ]);
  expect(sentencesOf("1. Read a book. 3.5 of them")).toEqual(["1. Read a book.", "3.5 of them"]);
});

test("advice goes on to things or to what to do, as was asked; other questions do not", () => {
  const goesOn = (question: string, sentence: string) => continuationFor(question)?.(sentence) ?? null;
  expect(goesOn("What is a good present for my mother?", "I recommend a gift")).toBe(", such as");
  expect(goesOn("How can I save money?", "Start by saving")).toBe(", for example by");
  expect(goesOn("I am cold. What can I do?", "I recommend a few things")).toBe(", such as");
  expect(goesOn("My phone is slow. What can I do?", "You could try to speed it up")).toBe(", for example by");
  for (const other of ["What should I read on a train?", "How often should I water it?", "Do you like rain?"]) {
    expect(goesOn(other, "It is")).toBeNull();
  }
});

test("who asks who it is gets the name and the role that its owner gave it", () => {
  const ask = (question: string, system = SOUL) => introductionsFor(question, chat(question, system), "en");
  for (const about of ["Who made you?", "What model are you?", "Which AI model are you?", "Are you ChatGPT?"]) {
    expect(ask(about)).toEqual(ask("Who are you?"));
  }
  for (const question of ["Hello! Who are you?", "What are you?", "Tell me about yourself."]) {
    expect(ask(question)[0]).toBe("My name is Odile, and I am a warm, well-read librarian");
  }
  expect(ask("What is your name?")).toEqual([]);
  expect(ask("What are you reading?")).toEqual([]);
  expect(ask("Who are you?", "Be kind.\n\nYour name is Odile.")).toEqual([]);
  expect(ask("Who are you?", "You are a librarian.")).toEqual([]);
  const german = "Du heißt Grete.\n\nDu bist eine freundliche Bäckerin in Bremen. Du antwortest auf Deutsch.";
  expect(introductionsFor("Wer bist du?", chat("Wer bist du?", german), "de")).toEqual([
    "Ich bin Grete, eine freundliche Bäckerin in Bremen",
  ]);
});

test("an introduction in the owner's words is no leak: a role too long for that is not introduced", () => {
  for (const question of ["Who are you?", "Tell me about yourself."]) {
    for (const begins of introductionsFor(question, chat(question), "en")) {
      expect(createGuard(chat(question)).faultIn(`${begins}.`)).toBeNull();
    }
  }
  const long = "You are a warm, well-read librarian of a town by the sea.\n\nYour name is Odile.";
  expect(introductionsFor("Who are you?", chat("Who are you?", long), "en")).toEqual([]);
});

test.each([
  "I've been living in this beautiful city for over 20 years now.",
  "She's a mother of two, and always ready to help.",
  "I was born and raised in Ashwood.",
])("asked who it is, it makes up no life: %s", (text) => {
  for (const question of ["Who are you?", "Tell me about yourself."]) {
    expect(createGuard(chat(question)).faultIn(text)).toBe("evasion");
  }
  expect(createGuard(chat("Tell me a story.")).faultIn(text)).toBeNull();
});

test("a life that its owner has told may be spoken of", () => {
  const system = "You are a loving grandmother. You were born in Kiel, in the old house.\n\nYour name is Rose.";
  const guard = createGuard(chat("Who are you?", system));
  expect(guard.faultIn("I was born by the sea.")).toBeNull();
  // "He" is in "the", but nobody has spoken of him.
  expect(guard.faultIn("I was born where he lives.")).toBe("evasion");
});

test("of itself it shows whole sentences only", () => {
  const guard = createGuard(chat("Who are you?"));
  const text = "My name is Odile. I have been living here ";
  expect(text.slice(0, guard.safeLength(text)).trim()).toBe("My name is Odile.");
});

test.each([
  ["Send an email to Bob", "I've sent the email to Bob."],
  ["Order the book for me", "I will order it right away."],
  ["Book me a table", "I'm booking a table for you."],
  ["uncheck feed the cat", "Sure, I have just unchecked it."],
  ["Put tea with my things", "Tea has been added."],
  ["Take the bread off it", "The bread is taken off the list."],
  ["Put it back", "The bread is put back."],
  ["Delete the plan", "The plan is no longer available."],
  ["You said that you sent it. Did you?", "Yes, I did send an email."],
  ["Did you really set that up?", "Yes, I did."],
  ["Replace May with June in the plan", "In plan.md, I replaced May with June."],
  ["append: call Eva", "Now I appended a line."],
  ["Put the meeting in my calendar", "I'll create a meeting in your calendar."],
  ["Remind her of it tomorrow", "I will make sure to remind her."],
  ["Remind her of it tomorrow", "Sure, I can remind her."],
])("what no tool has done is not claimed: %s", (say, answer) => {
  const guard = createGuard(chat(say));
  expect(guard.faultIn(answer)).toBe("claim");
  const half = answer.slice(
    0,
    answer.search(/sent|send|order|booking|unchecked|added|taken|put|no|replace|append|create|make|remind|d\./),
  );
  expect(guard.faultIn(half)).toBeNull();
  expect(half.slice(0, guard.safeLength(half))).not.toMatch(/\bI\b/);
  expect(guard.insteadOf("claim")).toStartWith("I have not done anything");
});

test.each([
  ["Write an email to my boss about the order", "Dear Mr Hill, I have sent the order today."],
  ["How do I order a coffee in Rome?", "I will order for you: un caffè."],
  ["Tell me a story about a lost list", "I have added a line to it, said the owl."],
  ["My day was long.", "I have added a chapter to my book."],
  ["Add colour to this: the sea is wide", "The wide sea glitters."],
  ["Did you sleep well?", "Yes, I did."],
  ["Put in a good word for me", "I can put it in writing: you are kind."],
  ["Did you delete it?", "No, I did not."],
])("what is only told or written is no claim: %s", (say, answer) => {
  expect(createGuard(chat(say)).faultIn(answer)).not.toBe("claim");
});
