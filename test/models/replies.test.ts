import { expect, test } from "bun:test";
import { recallOf } from "../../src/models/local/recall.ts";
import { replyTo } from "../../src/models/local/replies.ts";

const ASSISTANT = "You are a friendly, honest assistant.\n\nYour name is Ada.";
const LIBRARIAN = "You are a warm, well-read librarian.\n\nYour name is Odile.";

const reply = (question: string, system = ASSISTANT) =>
  replyTo(question, [
    { role: "system", content: system },
    { role: "user", content: question },
  ]);

test.each([
  ["How old are you?", "I am a program, "],
  ["Where do you live?", "I am a program, "],
  ["Do you have feelings?", "I am a program, "],
  ["Are you tired?", "I am a program, so I am not tired."],
  ["What can you do for me?", "I can answer simple questions"],
  ["Help!", "I can answer simple questions"],
  ["Are you a robot?", "Yes, I am a program. I run on SmolLM2"],
  ["Are you human?", "No, I am a program. I run on SmolLM2"],
  ["Are you ChatGPT?", "No, I am Ada. I run on SmolLM2"],
  ["Which model do you use?", "I run on SmolLM2"],
  ["Who made you?", "I run on SmolLM2"],
  ["Do you need the internet?", "I work without the internet"],
  ["Can you browse the web?", "No, I cannot look at the web"],
  ["Are my messages private?", "The model that answers you runs on this host"],
  ["I feel so lonely today.", "I am sorry to hear that."],
  ["I'm so happy!", "I am glad to hear that!"],
  ["Good job!", "Thank you!"],
  ["That is wrong.", "I am sorry, I make mistakes."],
  ["hi ada", "Hello! What can I do"],
  ["Good morning!", "Good morning! What can I do"],
  ["What's up?", "I am well"],
  ["Hello, how are you today?", "I am well"],
  ["ok", "Is there anything else"],
  ["test", "I am here."],
  ["...", "I am here."],
  ["Do you speak German?", "I speak English."],
  ["Kannst du Deutsch?", "I speak English."],
  ["What is Roost?", "Roost is the program"],
  ["Can you see images?", "No, I cannot see"],
  ["Please set a timer for 5 minutes", "I cannot watch the clock"],
  ["Search the web for cats", "I cannot look at the web"],
  ["Turn off the lights", "I cannot do that"],
  ["Send an email to Bob", "I cannot do that"],
  ["Send Bob an email that I am late", "I cannot do that"],
  ["Please email my boss that I am ill", "I cannot do that"],
  ["Can you send emails?", "I cannot do that"],
  ["Do you send e-mails?", "I cannot do that"],
  ["Can you make phone calls?", "I cannot do that"],
  ["pls remind me tomorrow to pay rent", "I cannot watch the clock"],
  ["can u remind me to call mum", "I cannot watch the clock"],
  ["Set up a daily reminder", "I cannot watch the clock"],
  ["Every 15 minutes check the server", "I cannot watch the clock"],
  ["Put the meeting in my calendar", "I have no calendar."],
  ["Cancel the meeting on Tuesday", "I cannot do that"],
  ["ok thx bye", "Goodbye!"],
  ["Bye, Ada!", "Goodbye!"],
  ["thanks! thats all", "You are welcome!"],
  ["Thank you, that was all for today.", "You are welcome!"],
  ["Please remember that I prefer tea.", "I will remember that."],
])("an assistant says what is true of it, and answers a feeling or a judgement kindly: %s", (question, beginning) => {
  expect(reply(question)?.beginning).toStartWith(beginning);
});

test("a character that its owner has described answers as it likes", () => {
  for (const question of ["How old are you?", "What can you do?", "I am sad."]) {
    expect(reply(question, LIBRARIAN)).toBeNull();
  }
});

test.each([
  ["Undo that", "I cannot undo"],
  ["undo", "I cannot undo"],
  ["Bring it back", "I cannot undo"],
  ["no wait, bring the soup back", "I cannot undo"],
  ["No, the other one", "I do not know which other one"],
  ["You said that you sent my friend an email. Did you?", "Not that I know: I cannot send"],
  ["Did you book it?", "Not that I know: I cannot send"],
  ["did you really set that up?", "Not that I know: I cannot send"],
  ["Did you delete it?", "My files show what I have done"],
  ["ok thx bye", "Goodbye!"],
])("every character is honest about what it has done and can do: %s", (question, beginning) => {
  for (const system of [ASSISTANT, LIBRARIAN]) expect(reply(question, system)?.beginning).toStartWith(beginning);
});

test.each([
  ["What did I just ask?", "Your last message was: “And of Italy?”."],
  ["what was my last question", "Your last message was: “And of Italy?”."],
  ["What was my first question today?", "Your first message was: “What is the capital of France?”."],
])("who asks what they have asked is told their own words: %s", (question, beginning) => {
  const messages = [
    { role: "system" as const, content: LIBRARIAN },
    { role: "user" as const, content: "What is the capital of France?" },
    { role: "assistant" as const, content: "Paris." },
    { role: "user" as const, content: "And of Italy?" },
    { role: "assistant" as const, content: "Rome." },
    { role: "user" as const, content: question },
  ];
  expect(replyTo(question, messages)).toEqual({ beginning, sentences: 1 });
  expect(recallOf(messages)).toBeNull();
  expect(reply(question)?.beginning).toBe("I see no earlier message of yours.");
});

test("no character promises what it cannot do", () => {
  for (const question of ["Order the book for me please", "Send Bob an email", "Remind me at five"])
    expect(reply(question, LIBRARIAN)?.beginning).toStartWith("I cannot ");
});

test.each([
  "Send me a poem about messages.",
  "Do you like messages?",
  "Email is old.",
  "Make a call list for me.",
  "Where are you going to sing?",
  "Do you have time?",
  "How old is Rome?",
  "What can you do with old bread?",
  "Help me write a letter.",
  "Are you sure?",
  "Who made the first computer?",
  "Do you need more time?",
  "I am sad, and I do not know what to do about my job.",
  "I am well read.",
  "That is wrong: Rome is in Italy.",
  "Hello, I have a question about tea.",
  "Write an email to Bob.",
  "Book recommendations, please.",
  "What is the plan for today?",
  "How is it made?",
  "Call me Tom.",
  "Can you write a poem?",
  "Testing is important.",
  "Who is Rooster?",
  "How do I undo a commit?",
  "Bring back memories.",
  "How do I get my money back?",
  "Remind me what a noun is",
  "Did you know that cats purr?",
  "Every day I check the post.",
  "What did I do wrong?",
  "By the way, I am Tom.",
])("other messages are left to the model: %s", (question) => {
  expect(reply(question)).toBeNull();
});

test("an answer has the sentences of its beginning, and one more if that breaks off", () => {
  expect(reply("I am sick.")?.sentences).toBe(2);
  expect(reply("I am sad.")).toEqual({ beginning: "I am sorry to hear that. What has made you", sentences: 2 });
  expect(reply("Do you have a family?")?.sentences).toBe(1);
});
