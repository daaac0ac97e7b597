import type { AgentIds } from "../../../clients/typescript/src/index.ts";
import type { Records } from "./api.ts";
import { roost } from "./api.ts";
import { figure, make, makeBar, part } from "./dom.ts";
import { AGENT } from "./records.ts";

type Context = Records["AgentContext"];
type Piece = Context["pieces"][number];

const list = part("context-list", HTMLUListElement);
const told = part("context-told", HTMLElement);

/** Many pieces of one kind are shown as one, with the pieces in it. */
const TOGETHER: Partial<Record<Piece["kind"], string>> = { message: "messages", tool: "tools" };

/** Shows what the next prompt of an agent's default conversation would hold, with a bar for the tokens of each part. */
export async function showContext(agent: AgentIds, isStillWanted: () => boolean): Promise<void> {
  list.replaceChildren();
  told.textContent = "";
  const context = await roost.get(`${AGENT}/context`, { path: agent });
  if (!isStillWanted()) return;
  const rows = rowsOf(context.pieces);
  const most = Math.max(1, ...rows.map(({ tokens }) => tokens));
  list.replaceChildren(...rows.map((row) => rowOf(row, most)));
  const { totalTokens, contextTokens, dropped } = context;
  const total = `About ${figure(totalTokens)} of ${figure(contextTokens)} tokens.`;
  told.textContent = dropped === 0 ? total : `${total} ${dropped} older messages are not shown to the model.`;
}

interface Row {
  name: string;
  tokens: number;
  pieces: Piece[];
}

function rowsOf(pieces: readonly Piece[]): Row[] {
  const rows = new Map<string, Row>();
  for (const piece of pieces) {
    const name = TOGETHER[piece.kind] ?? piece.name;
    const row = rows.get(name) ?? { name, tokens: 0, pieces: [] };
    row.tokens += piece.tokens;
    row.pieces.push(piece);
    rows.set(name, row);
  }
  return [...rows.values()];
}

/** Everything in it is shown as text. */
function rowOf({ name, tokens, pieces }: Row, most: number): HTMLLIElement {
  const bar = makeBar(`Tokens of ${name}`, tokens, most);
  const count = pieces.length > 1 ? ` (${pieces.length})` : "";
  const title = make(
    "summary",
    "",
    make("span", "", name + count),
    bar,
    make("small", "soft", `${figure(tokens)} tokens`),
  );
  const fold = make("details", "context-piece", title);
  // Only once somebody looks: there may be hundreds.
  const fill = () => fold.append(...pieces.map(textOf));
  fold.addEventListener("toggle", fill, { once: true });
  return make("li", "", fold);
}

function textOf({ text }: Piece): HTMLPreElement {
  const shown = make("pre", "", text);
  // It scrolls, so it must be reachable by keyboard.
  shown.tabIndex = 0;
  return shown;
}
