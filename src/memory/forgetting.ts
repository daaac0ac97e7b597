import type { Agents, Commit, FoundAgent } from "../agents/agents.ts";
import type { Agent } from "../agents/schema.ts";
import type { Workspaces } from "../agents/workspaces.ts";
import { AppError, notFound } from "../lib/app-error.ts";
import { pauseAfter } from "../storage/background-work.ts";
import type { Store } from "../storage/store.ts";
import { hashOfLine } from "./lines.ts";
import { type Notes, OTHER_LINES } from "./notes.ts";
import type { MemoryQueue } from "./queue.ts";
import type { Note } from "./schema.ts";
import type { Found } from "./search/entry.ts";
import type { Said, Sources } from "./sources.ts";

/** What the owner wants forgotten: all of a run, or all of a conversation. */
export type ToForget = { runId: string } | { conversationId: string };

export interface Forgotten {
  /** Lines of files, and messages. */
  deleted: number;
  /** The first of them. */
  items: Found[];
}

/**
 * Removes what runs have written into the files of the memory, and has their messages found no longer; the messages
 * themselves stay in their conversation. With `isDryRun` nothing changes. Throws `not_found` for a run or conversation
 * that is not the agent's.
 */
export type Forget = (
  find: () => FoundAgent,
  what: ToForget,
  isDryRun: boolean,
  commit: Commit<FoundAgent, Forgotten, Forgotten>,
) => Promise<Forgotten>;

/** Items that are shown of what was forgotten (docs/contract/api.md, Memory). */
const MAX_SHOWN = 50;
/** What a slice may take of the thread. */
const SLICE_MS = 4;
/** How often a file is read again because it was changed meanwhile. */
const MAX_TRIES = 5;

export interface ForgettingParts {
  store: Pick<Store, "commitSoon">;
  agents: Pick<Agents, "writeFile">;
  workspaces: Pick<Workspaces, "read" | "has" | "taintedOf">;
  notes: Notes;
  sources: Sources;
  queue: Pick<MemoryQueue, "add">;
}

export function createForgetting({ store, agents, workspaces, notes, sources, queue }: ForgettingParts): Forget {
  function notesOf(agentId: string, what: ToForget): Note[] {
    return "runId" in what ? notes.ofRun(agentId, what.runId) : notes.ofConversation(agentId, what.conversationId);
  }

  /** The conversation whose messages are meant; null if it is gone, and only its notes are left. */
  function conversationOf(agentId: string, what: ToForget, written: readonly Note[]): string | null {
    const conversationId = "runId" in what ? sources.run(agentId, what.runId)?.conversationId : what.conversationId;
    if (conversationId !== undefined && sources.conversation(agentId, conversationId) !== null) return conversationId;
    const isOwn = "runId" in what ? conversationId !== undefined : sources.owns(agentId, what.conversationId);
    if (!isOwn && written.length === 0) throw notFound("runId" in what ? "run" : "conversation");
    return null;
  }

  /** Where it was said: a run's messages are also where they were announced, and in forks. */
  function* saidOf(agentId: string, conversationId: string | null, runId: string | null) {
    const all: (Said & { conversationId: string })[] = [];
    const own = conversationId === null ? [] : [conversationId];
    for (const one of runId === null ? own : new Set([...own, ...sources.conversationsOf(agentId)])) {
      const said = yield* sources.said(one, runId, MAX_SHOWN);
      // A run that is not over may say more until it is forgotten.
      if (said.count > 0 || one === conversationId) all.push({ ...said, conversationId: one });
      yield;
    }
    return all;
  }

  /** The file as it is, without the lines of these notes. */
  function* without(agent: Agent, name: string, gone: readonly Note[]) {
    if (!workspaces.has(agent, name)) return null;
    const { bytes, etag } = workspaces.read(agent, name);
    const left = new Map<string, Note[]>();
    for (const note of gone) left.set(note.lineHash, [...(left.get(note.lineHash) ?? []), note]);
    const items: Found[] = [];
    const kept: string[] = [];
    for (const [at, line] of bytes.toString().split("\n").entries()) {
      const note = line.trim() === "" ? undefined : left.get(hashOfLine(line))?.shift();
      if (note === undefined) kept.push(line);
      else items.push(itemOf(note, line.trim(), at + 1));
      yield;
    }
    return { text: kept.join("\n"), etag, items };
  }

  /** Each file is a change of its own: what has been forgotten stays so, if a later one fails. */
  async function rewrite(find: () => FoundAgent, name: string, gone: readonly Note[]): Promise<Found[]> {
    const { accountId } = find().instance;
    const commit = (change: (found: FoundAgent) => void) => store.commitSoon(() => change(find()), "full", accountId);
    for (let tried = 1; ; tried++) {
      const { agent } = find();
      const found = await inSlices(without(agent, name, gone));
      // Lines that were too many to be known one by one are still there.
      const over = found === null ? gone : gone.filter(({ lineHash }) => lineHash !== OTHER_LINES);
      if (found === null || found.items.length === 0) {
        await commit(() => notes.forget(over));
        return [];
      }
      const isTainted = workspaces.taintedOf(agent, [name]).length > 0;
      const condition = { ifMatch: found.etag, ifNoneMatch: null };
      try {
        await agents.writeFile(
          find,
          name,
          Buffer.from(found.text),
          condition,
          (operate) =>
            commit((now) => {
              operate(now);
              notes.forget(over);
            }),
          isTainted,
        );
        return found.items;
      } catch (error) {
        const isChanged = error instanceof AppError && error.code === "precondition_failed";
        if (!isChanged || tried === MAX_TRIES) throw error;
      }
    }
  }

  return async (find, what, isDryRun, commit) => {
    const { agent, instance } = find();
    const { agentId } = agent;
    const written = notesOf(agentId, what);
    const conversationId = conversationOf(agentId, what, written);
    const runId = "runId" in what ? what.runId : null;
    const said = await inSlices(saidOf(agentId, conversationId, runId));
    const items: Found[] = [];
    for (const [name, gone] of Map.groupBy(written, ({ file }) => file)) {
      if (isDryRun) items.push(...((await inSlices(without(agent, name, gone)))?.items ?? []));
      else items.push(...(await rewrite(find, name, gone)));
    }
    return commit(() => {
      for (const { conversationId } of said) {
        if (isDryRun || !sources.owns(agentId, conversationId)) continue;
        sources.forget(conversationId, runId);
        queue.add({ accountId: instance.accountId, kind: "conversation", agentId, source: conversationId });
      }
      return {
        deleted: said.reduce((sum, { count }) => sum + count, items.length),
        items: [...items, ...said.flatMap(({ first }) => first)].slice(0, MAX_SHOWN),
      };
    });
  };
}

/** Does work with pauses, in which others are served. */
async function inSlices<T>(work: Generator<void, T>): Promise<T> {
  for (let startedMs = performance.now(); ; ) {
    const { done, value } = work.next();
    if (done) return value;
    const tookMs = performance.now() - startedMs;
    if (tookMs < SLICE_MS) continue;
    await pauseAfter(tookMs);
    startedMs = performance.now();
  }
}

const itemOf = ({ file, runId, conversationId, tainted, createdAt }: Note, text: string, line: number): Found => ({
  ...{ file, text, runId, conversationId, createdAt },
  fromLine: line,
  toLine: line,
  messageId: null,
  seq: 0,
  origin: tainted ? "untrusted" : "agent",
  score: 0,
});
