/** What tabs of this page say to each other, within one browser and one origin. It goes from memory to memory. */
export type Word =
  | { kind: "who is signed in" }
  | { kind: "session"; token: string }
  /** The session of this token is over. */
  | { kind: "ended"; token: string };

const channel = new BroadcastChannel("roost.session");

export const tellTabs = (word: Word): void => channel.postMessage(word);

export function hearTabs(listener: (word: Word) => void): void {
  channel.addEventListener("message", ({ data }) => listener(data as Word));
}
