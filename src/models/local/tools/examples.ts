/**
 * What people say when they want something looked up or done, and what sounds like it and is only talk. A message is
 * judged by the sentence in here that is closest to it in meaning (wanted.ts). The closest ones are also the worked
 * examples for what the model writes (use-tools.ts).
 */
export interface Examples {
  /** Only a message with all of these can want it: most talk is let through without being compared with anything. */
  mentions: readonly RegExp[];
  /** What the model is told to write, if it writes a part of the call. */
  task?: string;
  /** Each with what the model should write. */
  wants: readonly (readonly [say: string, write?: string])[];
  talk: readonly string[];
}

const NUMBER =
  "\\d+(?:\\.\\d+)?|zero|one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen|eighteen|nineteen|(?:twen|thir|for|fif|six|seven|eigh|nine)ty";

/** Tools that a message can want in so many words that it is judged by its meaning. */
export type AskedTool = "now" | "run_javascript" | "list_files" | "read_file";

export const EXAMPLES: Readonly<Record<AskedTool, Examples>> = {
  now: {
    mentions: [
      /\b(?:time|date|day|weekday|today|tomorrow|yesterday|month|year|late|monday|tuesday|wednesday|thursday|friday|saturday|sunday)\b/i,
      /\b(?:today|todays|tomorrow|yesterday|now|current|is it|(?:time|day|date) it is|the (?:time|date)|are we(?=(?: in| on)?(?: now| today)?\W*$)|do we have|(?:next|last|this) (?:week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day))\b/i,
      // When something else begins or ends, the clock does not say.
      /^(?!.*\b(?:open(?:s|ed|ing)?|clos(?:es?|ed|ing)|shuts?|(?:business|office|your|our|the) hours|begins?|starts?|ends?|leaves?|departs?|arrives?|appointments?|meetings?|due)\b)/is,
      // What is asked about a date, it cannot tell.
      /^(?:\D|\b\d{1,4}(?= (?:minutes?|hours?|days?|weeks?|months?|years?)\b(?: ago| from (?:now|today))?\W*$))*$/i,
    ],
    wants: [
      ["What time do we have?"],
      ["Could you tell me the current time?"],
      ["How late is it?"],
      ["What is the time in London now?"],
      ["What is today's date, please?"],
      ["Which day of the week is it?"],
      ["What day of the month is today?"],
      ["Is today Friday?"],
      ["What month is it now?"],
      ["Which year are we in?"],
      ["Tell me the date."],
      ["Do you have the time?"],
      ["What day is tomorrow?"],
      ["What was the date yesterday?"],
      ["What date is it in three weeks?"],
      ["What was the date last Monday?"],
    ],
    talk: [
      "How was your day?",
      "What shall we do tomorrow?",
      "What did you do yesterday?",
      "I am going away tomorrow.",
      "Yesterday was a bad day.",
      "What happens tomorrow?",
      "What will the weather be tomorrow?",
      "What a beautiful day it is today!",
      "What are you doing today?",
      "What shall we do today?",
      "I had a long day today.",
      "What is your favourite time of day?",
      "Which season of the year do you prefer?",
      "What is your favourite day of the week?",
      "What is time?",
      "Is it too late to start?",
      "What time should I get up?",
      "How do I save time?",
      "My birthday is next month.",
      "The meeting is on Monday at ten o'clock.",
      "How do you spend your day?",
      'How do you say "What time is it?" in French?',
      "Write a story about time.",
      "That is all for today, thank you.",
      "When was the clock invented?",
      "I am going out on a date.",
      "Do you have time for me?",
      "Is it true that Monday is the worst day?",
      "It is late, I have to go.",
      "Is today a good day to go out?",
      "What happened in that year?",
      "What is the best time to visit you?",
      "Is it hot at this time of the year?",
    ],
  },
  run_javascript: {
    mentions: [
      new RegExp(`(?<![a-z])(?:${NUMBER})(?![a-z]).*?(?<![a-z])(?:${NUMBER})(?![a-z])`, "is"),
      /\b(?:how (?:much|many)|what|calculate|compute|add|sum|subtract|minus|plus|times|multiply|divide|split|percent|take)\b|[-+*/×÷=%]/i,
    ],
    task: "Write the calculation.",
    wants: [
      ["What is 12 plus 30?", "12 + 30"],
      ["How much is 8 times 9?", "8 * 9"],
      ["Calculate 50 minus 18.", "50 - 18"],
      ["What is 96 divided by 4?", "96 / 4"],
      ["Multiply 6 by 11.", "6 * 11"],
      ["Subtract 7 from 20.", "20 - 7"],
      ["What is the sum of 3, 4 and 5?", "3 + 4 + 5"],
      ["Add 40 and 2.", "40 + 2"],
      ["Divide 63 by 7.", "63 / 7"],
      ["Take 15 away from 31.", "31 - 15"],
      ["What is the product of 4 and 13?", "4 * 13"],
      ["What is the difference between 52 and 27?", "52 - 27"],
      ["A ticket costs 3 euros. How much do 5 tickets cost?", "5 * 3"],
      ["There are 20 sweets for 5 children. How many does each child get?", "20 / 5"],
      ["I had 40 pens and lost 13. How many are left?", "40 - 13"],
      ["I have 8 red pens and 6 blue ones. How many are there in all?", "8 + 6"],
      ["I pay with 50 and it costs 32. What change do I get?", "50 - 32"],
      ["We split 60 euros between 3 people. What does each of us pay?", "60 / 3"],
      ["I earn 18 an hour. How much do I earn in 6 hours?", "6 * 18"],
      ["How many wheels do 9 cars with 4 wheels have?", "9 * 4"],
      ["What is 6 more than 21?", "21 + 6"],
      ["What is 5 less than 30?", "30 - 5"],
      ["5 * 6 =", "5 * 6"],
      ["(3 + 4) * 2", "(3 + 4) * 2"],
      ["What is 20 percent of 50?", "20 / 100 * 50"],
    ],
    talk: [
      "I have 2 brothers and 3 sisters.",
      "It took me 4 hours to drive 300 miles.",
      "The meeting is from 2 to 4.",
      "I was born in 1990 and moved in 2005.",
      "Tell me about the years 1914 to 1918.",
      "Which is the better number, 3 or 7?",
      "My children are 5 and 8 years old.",
      "Read chapters 1 and 2.",
      "Give me 3 tips in 2 sentences.",
      "How do children learn to multiply?",
      "I ran 5 kilometres in 30 minutes.",
      "There are one or two things that I like.",
      "Who won in 2004 and 2008?",
      "What happened between 1939 and 1945?",
    ],
  },
  list_files: {
    mentions: [
      /\b(?:files?|folders?|documents?|workspace|notes|director(?:y|ies)|stored|saved)\b/i,
      /\b(?:you|your|here|there|my|workspace|folder|list|show)\b/i,
    ],
    wants: [
      ["List your files."],
      ["What files are there?"],
      ["Show me all your documents."],
      ["What do you have in your folder?"],
      ["Which notes are in your workspace?"],
      ["Tell me the names of your files."],
      ["Are there any files in your workspace?"],
      ["What have you saved?"],
      ["List the files in the folder notes."],
    ],
    talk: [
      "What is a folder?",
      "How should I sort my documents?",
      "I lost all my files yesterday.",
      "I like to take notes.",
      "How do I delete a file on my computer?",
      "My notes from school are in a box.",
      "I saved a lot of money.",
      "Write a story about a secret document.",
      "Which documents do I need for a passport?",
      "How do I share a file with a friend?",
      "I work with files all day.",
      "Which files does a school keep?",
    ],
  },
  read_file: {
    mentions: [/\b(?:file|notes?|list|document|recipe|diary|journal)\b|\w\.(?:md|txt|csv|json)\b/i],
    task: "Write the name of the file.",
    wants: [
      ["Read the file report.md.", "report.md"],
      ["What does plan.txt say?", "plan.txt"],
      ["Show me journal/monday.md.", "journal/monday.md"],
      ["What is in budget.csv?", "budget.csv"],
      ["Open my notes about Paris.", "notes/paris.md"],
      ["What is written in the file about the garden?", "garden.md"],
      ["What is on my packing list?", "packing-list.md"],
      ["Read me my list of birthdays.", "birthdays.md"],
      ["What have I put on my list of jobs?", "jobs.md"],
      ["What did I write in my diary file?", "diary.md"],
      ["Show me my recipe for bread.", "recipes/bread.md"],
      ["Read me the recipe for cake.", "recipes/cake.md"],
    ],
    talk: [
      "What should I read?",
      "What is a good recipe for bread?",
      "How do I write a good list?",
      "Do you like to read?",
      "Which book should I open next?",
      "Show me that you are happy.",
      "I made a long list for the journey.",
      "Do you keep a diary?",
      "What does the weather say?",
      "I read your notes, thank you.",
      "I have the file now, thank you.",
      "What belongs on a packing list?",
      "What else could I write on my list?",
      "Can you recommend a recipe with potatoes?",
      "Read the news less and go outside.",
      "What does the saying mean?",
    ],
  },
};

export const isAsked = (name: string): name is AskedTool => Object.hasOwn(EXAMPLES, name);
