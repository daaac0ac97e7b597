/** What a person asks to be done with files and notes. */
export type Deed =
  | { does: "remember"; text: string }
  | { does: "write"; name: string; text: string }
  /** The model composes what is to be written, as an answer to the request. */
  | { does: "compose"; name: string; request: string }
  /** `file` is a name, or what the person calls it: "my shopping list". */
  | { does: "add"; file: string; text: string }
  | { does: "take"; file: string; item: string }
  | { does: "replace"; file: string; item: string; by: string }
  /** `isGuessed` if no list was named. */
  | { does: "check"; file: string; item: string; isGuessed?: true }
  | { does: "clear"; file: string }
  | { does: "copy"; file: string; to: string }
  | { does: "rename"; file: string; to: string }
  | { does: "delete"; file: string }
  | { does: "read"; file: string; isSummary?: true }
  | { does: "list"; folder: string | null }
  /** What was noted or said about something is looked up; about all, without a text. */
  | { does: "recall"; about: string | null }
  /** What was noted about something is taken out of the notes; about all, without a text. */
  | { does: "forget"; about: string | null }
  /** A file is to be changed, but it is not plain how, or there is more than one thing to do. */
  | { does: "unknown"; isSeveral?: true };
