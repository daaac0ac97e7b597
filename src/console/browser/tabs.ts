/** Messages between tabs of one browser and origin. They are never stored. */
export type Word =
  | { kind: "who is signed in" }
  | { kind: "session"; token: string }
  /** This token's session has ended. */
  | { kind: "ended"; token: string };

const channel = new BroadcastChannel("roost.session");

export const tellTabs = (word: Word): void => channel.postMessage(word);

export function hearTabs(listener: (word: Word) => void): void {
  channel.addEventListener("message", ({ data }) => listener(data as Word));
}
