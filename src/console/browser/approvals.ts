import { visibleJson } from "../../lib/visible-text.ts";
import { briefOf } from "./agent-steps.ts";
import { roost } from "./api.ts";
import { type Asked, type Decided, forgetDrafts, outcomeOf, showApproval } from "./approval.ts";
import { ago, attempt, confirmPress, make, part, reportErrors } from "./dom.ts";
import { fillWhenOpened } from "./folds.ts";
import { hashOf } from "./hash.ts";
import { agentName } from "./names.ts";
import { approvalsChanged, followOpenApprovals, OPEN_APPROVALS, readOpenApprovals } from "./open-approvals.ts";
import { type Approval, type ApprovalRule, INSTANCE, type Page } from "./records.ts";

const view = part("view-approvals", HTMLElement);
const list = part("approval-list", HTMLUListElement);
const section = part("open-approvals", HTMLElement);
const more = part("more-approvals", HTMLButtonElement);
const decided = part("decided-approvals", HTMLDetailsElement);
const rules = part("approval-rules", HTMLDetailsElement);

/** An approval of the list: folded to one line until somebody wants to see all of it. */
interface Row {
  item: HTMLLIElement;
  isOpen: boolean;
  decided(decision: Decided): void;
}

/**
 * The page with all approvals of the account, and the rules that were remembered. Returns a function that loads it, to call
 * when it is shown.
 */
export function openApprovals(): () => Promise<void> {
  const rows = new Map<string, Row>();
  /** Where the next older ones begin. */
  let cursor: string | null = null;

  function add(page: Page<Approval>): void {
    for (const approval of page.data) {
      const { approvalId } = approval;
      if (rows.has(approvalId)) continue;
      const row = makeRow(approval);
      row.item.id = approvalId;
      rows.set(approvalId, row);
      // Ids tell the order of time; the newest is first.
      const older = [...list.children].find(({ id }) => id < approvalId);
      list.insertBefore(row.item, older ?? null);
    }
    section.classList.remove("loading");
    more.hidden = cursor === null;
  }

  /** Shows how one was decided that is not open any more. */
  async function settle(approvalId: string, row: Row): Promise<void> {
    row.decided(await roost.get("/v1/approvals/{approvalId}", { path: { approvalId } }));
  }

  function follow(page: Page<Approval>): void {
    // Those in the range of this page that are not on it were decided elsewhere.
    const last = page.nextCursor === null ? "" : (page.data.at(-1)?.approvalId ?? "");
    const open = new Set(page.data.map(({ approvalId }) => approvalId));
    const isDecided = (approvalId: string) => approvalId >= last && !open.has(approvalId);
    forgetDrafts(isDecided);
    if (view.hidden) return;
    if (rows.size === 0) cursor = page.nextCursor;
    add(page);
    for (const [approvalId, row] of rows) {
      if (row.isOpen && isDecided(approvalId)) void settle(approvalId, row).catch(() => undefined);
    }
    for (const time of list.querySelectorAll("time")) time.textContent = ago(time.dateTime);
  }

  followOpenApprovals(follow);
  more.addEventListener("click", () => {
    void attempt(more, async () => {
      if (cursor === null) return;
      const page = await roost.get("/v1/approvals", { query: { ...OPEN_APPROVALS, after: cursor } });
      cursor = page.nextCursor;
      add(page);
    });
  });
  fillWhenOpened(decided, decidedApprovals, decidedRow);
  fillWhenOpened(rules, rememberedRules, ruleRow);

  return async () => {
    rows.clear();
    list.replaceChildren();
    section.classList.add("loading");
    for (const fold of [decided, rules]) fold.open = false;
    await reportErrors(list, readOpenApprovals);
  };
}

/** What it is about, how it was decided, since when it is asked, and by whom. */
function summaryOf(approval: Approval, state: string | Node): HTMLElement {
  const { tool, questions, input, instanceId, agentId, createdAt } = approval;
  const when = make("time", "", ago(createdAt));
  when.dateTime = createdAt;
  const method = (input as { method?: unknown } | null)?.method;
  const brief = questions ? briefOf(questions.map(({ question }) => question)) : briefOf(input);
  const what = typeof method === "string" && /^[A-Z]+$/.test(method) ? `${method} ${brief}` : brief;
  return make(
    "summary",
    "",
    make("span", "what", make("code", "", tool), " ", make("bdi", "", what)),
    make("span", "soft who", state, when, " · ", agentName(instanceId, agentId)),
  );
}

function makeRow(approval: Approval): Row {
  const { instanceId, agentId, conversationId, expiresAt } = approval;
  const state = make("span");
  const time = new Date(expiresAt).toLocaleString("en-GB", { dateStyle: "medium", timeStyle: "short" });
  const until = make("span", "", ` If nobody decides until ${time}, it is denied.`);
  const details = make("details", "", summaryOf(approval, state));
  let asked: Asked | undefined;
  const row: Row = {
    item: make("li", "", details),
    isOpen: true,
    decided(decision) {
      row.isOpen = false;
      state.textContent = `${outcomeOf(decision)} · `;
      until.remove();
      asked?.decided(decision);
    },
  };
  const show = () => {
    if (!details.open || asked) return;
    if (!row.isOpen) {
      details.append(make("pre", "", visibleJson(approval.input, 2)));
      return;
    }
    asked = showApproval(approval, (decision) => {
      row.decided(decision);
      approvalsChanged();
    });
    const link = make("a", "", "See it in its conversation");
    link.href = hashOf(instanceId, agentId, conversationId);
    details.append(asked.element, make("p", "soft", link, ".", until));
  };
  details.addEventListener("toggle", show);
  return row;
}

async function* decidedApprovals(): AsyncGenerator<Approval, undefined> {
  const all = roost.all("/v1/approvals", { query: { limit: 50 } });
  for await (const approval of all) if (approval.status !== "open") yield approval;
}

function decidedRow(approval: Approval): HTMLElement {
  const { input, note } = approval;
  const details = make("details", "", summaryOf(approval, `${outcomeOf(approval)} · `));
  details.append(make("pre", "", visibleJson(input, 2)));
  if (note !== null) details.append(make("p", "", `With it, your agent was told: ${note}`));
  return make("li", "", details);
}

type Remembered = ApprovalRule & { instanceId: string };

async function* rememberedRules(): AsyncGenerator<Remembered, undefined> {
  for await (const { instanceId } of roost.all("/v1/instances")) {
    for await (const rule of roost.all(`${INSTANCE}/approval-rules`, { path: { instanceId }, query: { limit: 50 } })) {
      yield { ...rule, instanceId };
    }
  }
}

function ruleRow({ ruleId, instanceId, agentId, tool, host, method }: Remembered): HTMLElement {
  const target = [method, host].filter((one) => one !== null).join(" ");
  const button = make("button", "quiet", "Ask again");
  button.type = "button";
  button.setAttribute("aria-label", `Ask again before ${tool} ${target}`.trim());
  const item = make(
    "li",
    "key",
    make("div", "", make("b", "", tool), make("code", "", target)),
    make("span", "soft", agentName(instanceId, agentId)),
    button,
  );
  confirmPress(button, "Really ask?", async () => {
    await roost.delete(`${INSTANCE}/approval-rules/{ruleId}`, { path: { instanceId, ruleId } });
    item.remove();
    rules.querySelector("summary")?.focus();
  });
  return item;
}
