import { roost } from "./api.ts";
import { make, part } from "./dom.ts";
import type { Approval, Page } from "./records.ts";
import { setTitle } from "./title.ts";

export const OPEN_APPROVALS = { status: "open", limit: 20 } as const;
/** Events of runs come in bursts: after one, the count waits for this long for others. */
const BURST_MS = 250;

const badge = part("open-count", HTMLElement);
const told = part("open-told", HTMLElement);
type Listener = (page: Page<Approval>) => void;
const listeners = new Set<Listener>();
let asked = 0;
let timer: ReturnType<typeof setTimeout> | undefined;

/** Calls this with the newest open approvals each time that they have been read. */
export function followOpenApprovals(listener: Listener): void {
  listeners.add(listener);
}

/** Resolves when these are not all among the newest that are open, or the signal is aborted. */
export async function untilDecided(approvalIds: readonly string[], signal: AbortSignal): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const see = ({ data }: Page<Approval>) => {
    const open = new Set(data.map(({ approvalId }) => approvalId));
    if (!approvalIds.every((approvalId) => open.has(approvalId))) resolve();
  };
  listeners.add(see);
  signal.addEventListener("abort", () => resolve(), { once: true });
  // It may have been decided before this.
  approvalsChanged();
  await promise;
  listeners.delete(see);
}

/** Reads what waits for a decision, and shows in the navigation how much it is. Throws if they cannot be. */
export async function readOpenApprovals(): Promise<void> {
  const mine = ++asked;
  const page = await roost.get("/v1/approvals", { query: OPEN_APPROVALS });
  // A later answer tells more.
  if (mine !== asked) return;
  const count = page.data.length + (page.nextCursor === null ? "" : "+");
  badge.hidden = page.data.length === 0;
  badge.replaceChildren(count, make("span", "unseen", " waiting"));
  setTitle({ waiting: badge.hidden ? "" : count });
  const words = badge.hidden ? "" : `${count} waiting for your approval`;
  badge.title = words;
  if (told.textContent !== words) told.textContent = words;
  for (const listener of listeners) listener(page);
}

/** Call it when something was asked or decided. */
export function approvalsChanged(): void {
  clearTimeout(timer);
  timer = setTimeout(() => void readOpenApprovals().catch(() => undefined), BURST_MS);
}
