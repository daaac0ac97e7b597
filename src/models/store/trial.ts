/** Tries a model out in a process of its own, before it is said to be there. */
import { defaultThreads } from "../local/physical-cores.ts";
import type { AddedModel, Trial } from "../local/protocol.ts";
import { createSupervisor, modelProcessCommand } from "../local/supervisor.ts";
import { type Facts, UnusableModel } from "./inspect.ts";

export interface TrialOptions {
  /** For what a compiled binary unpacks. */
  cacheDir: string;
  command?: string[];
}

/** How long the model may take to load and to write a few words. */
const TRIAL_MS = 180_000;

/** Throws `UnusableModel`, saying why the model does not work. */
export async function tryOut(
  model: AddedModel,
  shape: Facts["shape"],
  { cacheDir, command = modelProcessCommand() }: TrialOptions,
): Promise<Trial> {
  const supervisor = createSupervisor({
    command,
    settings: {
      cacheDir,
      threads: defaultThreads(),
      slots: 1,
      cacheTokens: model.contextTokens,
      stepper: "ffi",
      model,
    },
    idleMs: TRIAL_MS,
    silentMs: TRIAL_MS,
    log: { info() {}, warn() {} },
    // It is tried on both paths, and the wrong one complains.
    errors: "ignore",
  });
  const { promise, resolve, reject } = Promise.withResolvers<Trial>();
  supervisor.submit({
    request: { type: "try", id: 1, shape },
    whose: {},
    onReply(reply) {
      if (reply.type === "tried") resolve(reply);
      else if (reply.type === "failed") reject(unusable(reply.message));
    },
    onFailure: ({ message }) => reject(unusable(message)),
  });
  try {
    return await promise;
  } finally {
    await supervisor.close();
  }
}

const MAX_REASON = 300;

const unusable = (reason: string): UnusableModel => {
  const [line = ""] = reason.split("\n");
  return new UnusableModel(`it does not work here (${line.slice(0, MAX_REASON)}); another --dtype may`);
};
