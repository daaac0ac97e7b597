import type { MessageInput } from "../../../clients/typescript/src/index.ts";
import { Failure } from "../failure.ts";
import type { AnswerView } from "./answer-view.ts";
import { type Client, isRefusal, type Records } from "./client.ts";
import { AGENT, type AgentRecord, idsOf } from "./find.ts";
import { whenLost } from "./lost-connection.ts";
import { watchTurn } from "./turn.ts";

/** The result of sending a message. */
export interface Outcome {
  reply: Records["Message"] | null;
  cancelled: boolean;
}

/** The user left before the answer ended. */
export class Interrupted extends Failure {}

/** How long to wait, when the user leaves, for the server to accept the cancellation. */
const CANCEL_WAIT_MS = 2_000;

/**
 * Sends a message and shows its events as they arrive. The first Ctrl-C cancels the run and waits for its last
 * events; the second stops waiting and throws `Interrupted`. Throws `Failure` if the run fails.
 */
export async function ask(
  client: Client,
  agent: AgentRecord,
  message: MessageInput,
  view: AnswerView,
): Promise<Outcome> {
  const leaving = new AbortController();
  const outcome: Outcome = { reply: null, cancelled: false };
  const cancelling: Promise<void>[] = [];
  let runId: string | null = null;
  let interrupted = false;
  let endWatch = () => {};
  const cancel = () => {
    if (runId !== null) cancelling.push(cancelRun(client, agent, runId).catch((error) => leaving.abort(error)));
  };
  const onInterrupt = () => {
    if (interrupted) {
      const known = "left while the answer was being cancelled";
      leaving.abort(
        new Interrupted(runId === null ? "left before the server answered: it may still have the message" : known),
      );
    } else {
      interrupted = true;
      cancel();
    }
  };
  process.on("SIGINT", onInterrupt);
  try {
    const connected = whenLost(view.lost);
    for await (const event of client.send(agent, message, { signal: leaving.signal, connected })) {
      if (runId === null) {
        runId = event.runId;
        if (interrupted) cancel();
      }
      endWatch();
      if (event.type === "run.queued") endWatch = watchTurn(client, agent, event.conversationId, view.showBefore);
      view.show(event);
      if (event.type === "message.completed") outcome.reply = event.message;
      else if (event.type === "run.cancelled") outcome.cancelled = true;
      else if (event.type === "run.failed") throw new Failure(event.error.message, NEXT[event.error.code] ?? null);
    }
    await Promise.all(cancelling);
    return outcome;
  } catch (error) {
    if (error instanceof Interrupted) await Promise.race([Promise.all(cancelling), Bun.sleep(CANCEL_WAIT_MS)]);
    throw error;
  } finally {
    process.off("SIGINT", onInterrupt);
    endWatch();
    view.end();
  }
}

const NEXT: Record<string, string> = { model_error: "on the host, check the model: roost doctor" };

/** Asks the server to cancel a run; does nothing if it has ended. */
async function cancelRun(client: Client, agent: AgentRecord, runId: string): Promise<void> {
  try {
    await client.post(`${AGENT}/runs/{runId}/cancel`, { path: { ...idsOf(agent), runId } });
  } catch (error) {
    if (!isRefusal(error) || error.code !== "not_found") throw error;
  }
}
