/** Has the embedded model answer a case with real tools: the agent loop, the engine, the policy and the tools of the product. */

import { readDefaultFiles } from "../../src/agents/default-files.ts";
import { systemClock } from "../../src/lib/clock.ts";
import type { ModelMessage, ToolDescription } from "../../src/models/engine.ts";
import type { LocalEngine } from "../../src/models/local.ts";
import { LOCAL_MODEL } from "../../src/models/local-models.ts";
import { runAgent } from "../../src/runtime/agent-loop.ts";
import type { RunInput } from "../../src/runtime/protocol.ts";
import { createSandbox, type Sandbox } from "../../src/sandbox/sandbox.ts";
import { createCodeRunner } from "../../src/skills/scripts.ts";
import { now } from "../../src/tools/now.ts";
import { callTool } from "../../src/tools/policy.ts";
import type { WorkspacePort } from "../../src/tools/ports.ts";
import { remember } from "../../src/tools/remember.ts";
import { runJavaScript } from "../../src/tools/run-javascript.ts";
import { runScript } from "../../src/tools/run-script.ts";
import { searchMemory } from "../../src/tools/search-memory.ts";
import type { Tool, ToolContext } from "../../src/tools/tool.ts";
import { createToolbox, type Toolbox } from "../../src/tools/toolbox.ts";
import { workspaceTools } from "../../src/tools/workspace-files.ts";
import { policyPorts } from "../../test/support/policy-ports.ts";
import { FILES, NOTED } from "./cases.ts";

export interface CallMade {
  name: string;
  input: Record<string, unknown>;
  output: string;
}

export interface ToolAnswer {
  calls: CallMade[];
  /** Empty if the answer was not waited for, because no tool was called. */
  text: string;
}

/** The system prompt of a persona that likes to talk. */
const CHARACTER = "You are a warm, well-read librarian. You talk about books, people and the weather.";

export interface Answering {
  /** Throws if this machine runs no scripts, so that a tool which needs them would only seem to be called wrongly. */
  check(): Promise<void>;
  answer(engine: LocalEngine, say: string): Promise<ToolAnswer>;
  close(): Promise<void>;
}

export function createAnswering(): Answering {
  const sandbox = createSandbox({ log: { warn() {} }, accountOf: (id) => id });
  return {
    async check() {
      const { level, detail } = await sandbox.probe();
      if (level === "none") throw new Error(`no scripts are run here: ${detail}`);
    },
    async answer(engine, say) {
      const toolbox = createTools(sandbox);
      const given: ToolAnswer = { calls: [], text: "" };
      const abilities = engine.abilities(LOCAL_MODEL);
      const tools = toolbox.offerOnly(typeof abilities.tools === "boolean" ? [] : abilities.tools, null);
      const run: RunInput = {
        ...{ runId: "run_eval", agentName: "Ada", skills: [], moreSkills: 0, earlier: 0, journal: [] },
        files: [{ name: "SOUL.md", text: CHARACTER }],
        readsSkills: false,
        model: abilities,
        conversation: [{ role: "user", text: say }],
      };
      const loop = runAgent(run, {
        streamModel: (messages, signal) => engine.stream(requestOf(messages, tools), signal),
        async callTool(call, signal) {
          const reply = await callTool(toolbox, call, { ...CONTEXT, signal }, policyPorts());
          if ("waitsFor" in reply) throw new Error(`${call.name} waits`);
          given.calls.push({ name: call.name, input: JSON.parse(call.input), output: reply.output });
          return reply;
        },
        mayRunTogether: async () => false,
        onFault: console.error,
        signal: never,
      });
      for await (const event of loop) {
        if (event.type === "delta") given.text += event.text;
        if (event.type === "ended" && event.outcome.kind === "failed") throw new Error(event.outcome.message);
      }
      return given.calls.length === 0 ? { calls: [], text: "" } : given;
    },
    close: () => sandbox.close(),
  };
}

const never = new AbortController().signal;
const CONTEXT = {
  ...{ instanceId: "inst_eval", agentId: "agt_eval", conversationId: "conv_eval", runId: "run_eval" },
  ...{ isTainted: false, mayAsk: true, waiting: 0, clock: systemClock },
};

const requestOf = (messages: ModelMessage[], tools: readonly ToolDescription[]) => ({
  ...{ model: LOCAL_MODEL, messages, tools, accountId: "acct_eval", instanceId: "inst_eval" },
  // What it says without a tool is judged elsewhere (../run.ts).
  maxTokens: 1,
});

function createTools(sandbox: Sandbox): Toolbox {
  const runCode = createCodeRunner({
    skills: {
      read() {
        throw new Error("no skill is installed in these cases");
      },
    },
    readFile: () => Promise.reject(new Error("not in these cases")),
    run: (job, context: ToolContext) => runScript(sandbox, job, context),
  });
  const memory = [
    remember({ remember: async () => "memory/2026-11-22.md" }) as Tool,
    searchMemory({ search: async () => ({ items: NOTED.map(asFound), degraded: null }) }) as Tool,
  ];
  return createToolbox([now, ...workspaceTools(createWorkspace()), ...memory, runJavaScript(sandbox, runCode) as Tool]);
}

const asFound = (text: string, at: number) => ({
  ...{ where: `memory/2026-11-21.md, line ${at + 1}`, text: `- ${text}` },
  ...{ createdAt: Date.parse("2026-11-21T12:00Z"), isUntrusted: false },
});

/** In memory, and new for each case. */
function createWorkspace(): WorkspacePort {
  const files = new Map([...readDefaultFiles(), ...Object.entries(FILES)]);
  const read = new Set<string>();
  const textOf = (name: string) => {
    const text = files.get(name);
    if (text === undefined) throw new Error(`there is no file ${name}`);
    return text;
  };
  return {
    list: async (_, folder) =>
      [...files]
        .filter(([name]) => folder === null || name.startsWith(`${folder}/`))
        .map(([name, text]) => ({ name, size: Buffer.byteLength(text), isTainted: false }))
        .sort((a, b) => (a.name < b.name ? -1 : 1)),
    read(_, name) {
      const bytes = Buffer.from(textOf(name));
      read.add(name);
      return { bytes, isTainted: false };
    },
    versionOf: (_, name) => files.get(name) ?? null,
    async write(_, name, text) {
      const created = !files.has(name);
      if (!created && !read.has(name)) throw new Error(`${name} exists and was not read`);
      files.set(name, text);
      return { created };
    },
    edit: () => Promise.reject(new Error("not in these cases")),
    async remove(_, name) {
      textOf(name);
      files.delete(name);
    },
  };
}
