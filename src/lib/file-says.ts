/** What a file has about a question, in the form in which a small model is shown it and tells it. */
import { TEXT_FILE } from "./questions.ts";

const OF_FILE = new RegExp(`^[^\\n:]+${TEXT_FILE} says: `, "i");

/** "FAQ.md says: Open from Monday to Friday." */
export const fileSays = (name: string, text: string): string => `${name} says: ${text}`;

export const isOfFile = (text: string): boolean => OF_FILE.test(text);
