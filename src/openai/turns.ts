import { AppError } from "../lib/app-error.ts";
import { MAX_BODY_BYTES } from "../limits/body-bytes.ts";
import type { Asked } from "../messages/runs/unkept-runs.ts";
import type { ToolCall } from "../models/engine.ts";
import type { Turn } from "../runtime/protocol.ts";
import { tokensOfTurn } from "../runtime/tokens.ts";

/** One thing that was said, in either of OpenAI's forms; `param` is where in the request. */
export type Said =
  | { kind: "user"; text: string; images: string[]; param: string }
  | { kind: "assistant"; text: string; calls: ToolCall[]; param: string }
  | { kind: "result"; callId: string; text: string; param: string };

/** What a request says, and its system and developer messages. */
export interface SaidInRequest {
  said: Said[];
  instructions: string[];
}

/** Of instructions alone, the last are what is to be answered. `whole` names the list. */
export function withSomethingSaid({ said, instructions }: SaidInRequest, whole: string): SaidInRequest {
  const last = instructions.at(-1);
  if (said.length > 0 || last === undefined) return { said, instructions };
  return { said: [{ kind: "user", text: last, images: [], param: whole }], instructions: instructions.slice(0, -1) };
}

/** For a request of so many bytes. Throws `payload_too_large` if that is not for its images: texts are looked at in every step. */
export function requireOrdinaryTexts(said: readonly Said[], bytes: number): void {
  const ofImages = said.flatMap((one) => (one.kind === "user" ? one.images : [])).map(({ length }) => length);
  if (bytes - ofImages.reduce((sum, length) => sum + length, 0) <= MAX_BODY_BYTES) return;
  throw new AppError("payload_too_large", `body: expected at most ${MAX_BODY_BYTES} bytes besides its images`);
}

const refuse = (param: string, what: string) => new AppError("invalid_request", `${param}: ${what}`, { param });

/**
 * A conversation as an agent's prompt shows it: calls with their results, whoever made them. It sets no state, and counts as
 * what a stranger may have written once it quotes an answer or a result. Throws `invalid_request` for a call without a
 * result, or the other way round; `whole` names the list.
 */
export function toTurns(said: readonly Said[], whole: string, sees: boolean): Pick<Asked, "turns" | "isTainted"> {
  const turns: Turn[] = [];
  /** Calls of the last turn that have no result yet. */
  let open = new Map<string, { result: string }>();
  const requireResults = (param: string) => {
    const [missing] = open.keys();
    if (missing !== undefined) throw refuse(param, `expected the result of the call ${missing} first`);
  };
  for (const one of said) {
    if (one.kind === "result") {
      const made = open.get(one.callId);
      if (made === undefined) throw refuse(one.param, "expected the result of a call in the message before it");
      made.result = one.text;
      open.delete(one.callId);
      continue;
    }
    requireResults(one.param);
    if (one.kind === "user") {
      if (one.images.length > 0 && !sees) {
        throw refuse(one.param, "the agent's model sees no images: send text, or give the agent a stronger model");
      }
      turns.push({ role: "user", text: one.text, ...(one.images.length > 0 && { images: one.images }) });
    } else if (one.calls.length === 0) turns.push({ role: "assistant", text: one.text });
    else {
      const calls = one.calls.map((call) => ({ call, result: "" }));
      open = new Map(calls.map((made) => [made.call.id, made]));
      turns.push({ role: "assistant", text: one.text, calls });
    }
  }
  requireResults(whole);
  if (!turns.some(({ role, calls }) => role === "user" || calls)) throw refuse(whole, "expected something to answer");
  return { turns: turns.map(outlineOf), isTainted: turns.some(({ role }) => role === "assistant") };
}

const outlineOf = (turn: Turn): Asked["turns"][number] => ({
  role: turn.role,
  tokens: tokensOfTurn(turn),
  read: () => turn,
});
