/** Messages between tabs of one browser and origin. They are never stored. */
export type TabMessage =
  | { kind: "who is signed in" }
  | { kind: "session"; token: string }
  /** This token's session has ended. */
  | { kind: "ended"; token: string };

const channel = new BroadcastChannel("roost.session");

export const notifyTabs = (message: TabMessage): void => channel.postMessage(message);

export function listenToTabs(listener: (message: TabMessage) => void): void {
  channel.addEventListener("message", ({ data }) => listener(data as TabMessage));
}
