import type { Clock } from "../lib/clock.ts";
import { costOfTokens, type ModelPrices, type TokenCounts } from "../limits/model-prices.ts";
import { type ModelEngine, ModelError, type ModelEvent, type ModelRequest } from "../models/engine.ts";
import type { CallModel, ModelCall } from "../runtime/model-call.ts";
import { type ModelCallFigures, watchModelCall } from "../runtime/run-watch.ts";
import { probableTokens } from "../runtime/tokens.ts";
import type { CallLog } from "./call-log.ts";
import type { OpenCall, Reservations } from "./reservations.ts";

export interface CallModelParts {
  clock: Clock;
  prices: ModelPrices;
  /** Throws `ModelError` for a model that the host does not have. */
  engineOf(model: string): ModelEngine;
  reservations: Reservations;
  callLog: Pick<CallLog, "begin" | "add" | "writeCutOff">;
  onModelCall(call: ModelCallFigures): void;
}

/**
 * Every call of a model goes through here. It holds what the call may take before it goes out, tries the models in their
 * order, and records what each try took (docs/contract/api.md, Limits of models).
 */
export function createCallModel(parts: CallModelParts): CallModel {
  const { engineOf, reservations } = parts;

  /** One model's turn, with the tries that its engine makes. */
  async function* ask(call: ModelCall, model: string, signal: AbortSignal): AsyncGenerator<ModelEvent[]> {
    const engine = engineOf(model);
    const maxTokens = engine.answerTokens({ ...call, model });
    // Where no limit applies there is nothing to wait for.
    const opened = reservations.open(call, model, maxTokens, engine, signal);
    const open = opened instanceof Promise ? await opened : opened;
    const recorder = record(parts, call, open);
    const watched = watchModelCall(call.trace, { ...call, model, maxTokens }, parts.onModelCall);
    let error: string | null = "cancelled";
    try {
      const { models: _, agentId: __, purpose: ___, tally: ____, trace: _____, ...request } = call;
      const onSent: ModelRequest["onSent"] = (server) => {
        recorder.sent();
        watched.sentTo(server ?? null);
      };
      const { refused: onRefused } = recorder;
      const asked = { ...request, model, maxTokens, traceparent: watched.traceparent, onSent, onRefused };
      for await (const events of engine.stream(asked, signal)) {
        watched.saw(events);
        yield recorder.saw(events);
      }
      error = null;
    } catch (thrown) {
      if (!signal.aborted) error = thrown instanceof ModelError ? thrown.kind : "internal";
      throw thrown;
    } finally {
      recorder.end(error);
      watched.end(error);
      // Nobody waits for a cancelled call, so nothing else would commit it.
      if (signal.aborted) parts.callLog.writeCutOff(call.runId ?? null);
    }
  }

  return async function* callModel(call, signal) {
    const last = call.models.length - 1;
    const end = parts.callLog.begin();
    try {
      for (const [at, model] of call.models.entries()) {
        let isShown = false;
        try {
          for await (const events of ask(call, model, signal)) {
            isShown = true;
            yield events;
          }
          return;
        } catch (error) {
          if (isShown || at === last || signal.aborted || !mayAnswerElsewhere(error)) throw error;
        }
      }
    } finally {
      end();
    }
  };
}

const mayAnswerElsewhere = (error: unknown): boolean =>
  error instanceof ModelError && (error.kind === "unavailable" || error.kind === "unknown_model");

/** How a try may end of which is known that it took nothing: the server refused it, or it never got there. */
const TOOK_NOTHING: ReadonlySet<string> = new Set(["unavailable", "unknown_model", "rejected", "context_overflow"]);
const NOTHING: TokenCounts = { promptTokens: 0, cachedTokens: 0, completionTokens: 0 };

/** Records one model's turn: the tries that failed, and the one that has answered or failed last. */
function record({ clock, prices, callLog }: CallModelParts, call: ModelCall, open: OpenCall) {
  const { accountId, instanceId, agentId, purpose, runId = null, tally } = call;
  const { model, ofHost, createdAt } = open;
  let usage: TokenCounts | null = null;
  let isSent = false;
  let answerBytes = 0;

  const costOf = (counts: TokenCounts): number | null => costOfTokens(prices.get(model), counts);

  function add(outcome: string, counts: TokenCounts, estimated: boolean, isLast: boolean): void {
    const cost = costOf(counts);
    const whose = { accountId, instanceId, agentId, runId, model, purpose, ofHost };
    const reservationId = isLast ? open.reservationId : null;
    const row = { ...whose, ...counts, outcome, cost, estimated, createdAt: isLast ? createdAt : clock.now() };
    callLog.add({ call: row, reservationId, tally, written: open.written });
    if (isLast) open.settle({ tokens: counts.promptTokens + counts.completionTokens, cost: cost ?? 0 });
  }
  const tookNothing = (error: string): boolean => TOOK_NOTHING.has(error) || (error === "cancelled" && !isSent);
  const estimate = (): TokenCounts => ({ ...probableTokens(call, answerBytes), cachedTokens: 0 });
  const told = (counts: TokenCounts): ModelEvent => ({ type: "usage", ...counts, cost: costOf(counts) });

  return {
    sent: () => {
      isSent = true;
    },
    refused: () => {
      isSent = false;
      add("unavailable", NOTHING, false, false);
    },
    /** The events, with the cost of their usage, which is estimated if the engine reports none before the end. */
    saw(events: ModelEvent[]): ModelEvent[] {
      const seen = events.map((event) => {
        if (event.type === "text") answerBytes += Buffer.byteLength(event.text);
        else if (event.type === "tool_call")
          answerBytes += event.call.name.length + Buffer.byteLength(event.call.input);
        else if (event.type === "usage") {
          const { promptTokens, cachedTokens = 0, completionTokens } = event;
          usage = { promptTokens, cachedTokens, completionTokens };
          return told(usage);
        }
        return event;
      });
      if (usage === null && seen.at(-1)?.type === "finish") seen.splice(-1, 0, told(estimate()));
      return seen;
    },
    /** `error` is how the last try has failed; null if it has answered. */
    end(error: string | null): void {
      if (usage !== null) add(error ?? "answered", usage, false, true);
      else if (error !== null && tookNothing(error)) add(error, NOTHING, false, true);
      else add(error ?? "answered", estimate(), true, true);
    },
  };
}
