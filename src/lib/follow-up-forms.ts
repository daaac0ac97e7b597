/** What the forms of messages that follow others have in common (follow-ups.ts). English only. */

export interface Exchange {
  /** The person's message, in a whole sentence; empty if there was none. */
  asked: string;
  /** What was answered to it. */
  answered: string;
}

export interface Before extends Exchange {
  /** All exchanges so far, the oldest first and that one last; only that one, if not given. */
  exchanges?: readonly Exchange[];
}

/** What may come before and after a request: "Ok, and save it as tea.md please". The sources of regular expressions. */
export const LEAD =
  "^\\W*(?:(?:hello|hi|hey|and|then|also|now|so|just|ok|okay|yes|great|good|nice|perfect|cool|thanks|thank you|please|(?:can|could|will|would) you|i(?:['’]d| would)? (?:like|want|need) you to)\\b\\W*)*";
export const TAIL = "(?:,? (?:please|thanks|thank you|for me))*[\\s?.!]*$";
