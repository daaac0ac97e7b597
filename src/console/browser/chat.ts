import { type Agent, type ApiError, call, type Instance, type Message, type Page } from "./api.ts";
import { attempt, make, money, part } from "./dom.ts";
import { type RunEvent, sendMessage } from "./run.ts";

const start = part("start-hello", HTMLButtonElement);
const intro = part("hello-intro", HTMLElement);
const talk = part("talk", HTMLElement);
const log = part("chat-log", HTMLElement);
const form = part("chat-form", HTMLFormElement);
const input = part("chat-input", HTMLTextAreaElement);
const send = part("chat-send", HTMLButtonElement);
const cancel = part("chat-cancel", HTMLButtonElement);
const ideas = part("chat-ideas", HTMLElement);
const state = part("instance-state", HTMLElement);
const power = part("instance-power", HTMLButtonElement);

export interface Hello {
  instance: Instance;
  agent: Agent;
}

/** The first conversation: takes up the newest instance with an agent, or offers to make both with one press. */
export async function openChat(ready: (hello: Hello) => void, spent: () => void): Promise<void> {
  const begin = (hello: Hello) => {
    intro.hidden = true;
    talk.hidden = false;
    openTalk(hello, spent);
    ready(hello);
  };
  start.addEventListener("click", () => {
    void attempt(start, async () => {
      const instance =
        (await newestInstance()) ?? (await call<Instance>("POST", "/instances", { name: "My first instance" }));
      const agent = await call<Agent>("POST", `/instances/${instance.instanceId}/agents`, { name: "Ada" });
      begin({ instance, agent });
      spent();
      input.focus();
    });
  });
  await attempt(start, async () => {
    const instance = await newestInstance();
    if (!instance) return;
    const agents = await call<Page<Agent>>("GET", `/instances/${instance.instanceId}/agents?limit=1`);
    const [agent] = agents.data;
    if (!agent) return;
    begin({ instance, agent });
    const messages = `/instances/${instance.instanceId}/agents/${agent.agentId}/messages?order=desc&limit=20`;
    const page = await call<Page<Message>>("GET", messages);
    for (const { role, message, finishReason } of page.data.reverse()) addTurn(role, message, noteOf(finishReason));
  });
  intro.hidden = !talk.hidden;
}

async function newestInstance(): Promise<Instance | undefined> {
  const { data } = await call<Page<Instance>>("GET", "/instances?limit=20");
  return data.find(({ status }) => status === "running") ?? data[0];
}

function openTalk({ instance, agent }: Hello, spent: () => void): void {
  const instancePath = `/instances/${instance.instanceId}`;
  const agentPath = `${instancePath}/agents/${agent.agentId}`;
  part("agent-name", HTMLElement).textContent = agent.displayName;
  input.placeholder = `Message ${agent.displayName}`;
  showInstance(instance);
  power.addEventListener("click", () => {
    void attempt(power, async () => {
      const verb = power.dataset.verb ?? "start";
      showInstance(await call<Instance>("POST", `${instancePath}/${verb}`));
      spent();
    });
  });

  let runId: string | undefined;
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const text = input.value.trim();
    if (text === "" || send.disabled) return;
    input.focus();
    void attempt(form, async () => {
      cancel.disabled = false;
      try {
        await answer(agentPath, text, (event) => {
          runId = event.runId;
          cancel.hidden = runId === undefined;
        });
      } finally {
        cancel.hidden = true;
        spent();
        showInstance(await call<Instance>("GET", instancePath));
      }
    });
  });
  cancel.addEventListener("click", () => {
    if (runId !== undefined) void attempt(cancel, () => call("POST", `${agentPath}/runs/${runId}/cancel`));
  });
  input.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  for (const idea of ideas.querySelectorAll("button")) {
    idea.addEventListener("click", () => {
      input.value = idea.textContent;
      form.requestSubmit();
    });
  }
}

/** One question and its answer, shown as it comes. Throws `ApiError`; the question is then back in the box. */
async function answer(agentPath: string, text: string, told: (event: RunEvent) => void): Promise<void> {
  const question = addTurn("user", text);
  const turn = addTurn("agent", "");
  turn.classList.add("thinking");
  input.value = "";
  log.setAttribute("aria-busy", "true");
  try {
    for await (const event of sendMessage(agentPath, text)) {
      told(event);
      show(turn, event);
    }
  } catch (error) {
    const refused = turn.classList.contains("thinking");
    if (refused) {
      question.remove();
      turn.remove();
      input.value = text;
    }
    throw error as ApiError;
  } finally {
    turn.classList.remove("thinking");
    log.setAttribute("aria-busy", "false");
  }
}

function show(turn: HTMLElement, { type, delta, message, name, error }: RunEvent): void {
  const [said, note] = turn.children as unknown as [HTMLElement, HTMLElement];
  const atEnd = log.scrollHeight - log.scrollTop - log.clientHeight < 80;
  switch (type) {
    case "message.delta":
      turn.classList.remove("thinking");
      note.textContent = "";
      said.append(delta ?? "");
      break;
    case "run.restarted":
      said.textContent = "";
      break;
    case "tool.started":
      note.textContent = `uses ${name}`;
      break;
    case "message.completed":
      said.textContent = message?.message ?? "";
      note.textContent = noteOf(message?.finishReason ?? null);
      break;
    case "run.failed":
      turn.classList.remove("thinking");
      note.textContent = error?.message ?? "the run failed";
      break;
  }
  if (atEnd) log.scrollTop = log.scrollHeight;
}

const noteOf = (finishReason: string | null): string =>
  ({ cancelled: "stopped", length: "cut at the length limit", error: "broken off by an error" })[finishReason ?? ""] ??
  "";

function addTurn(role: "user" | "agent", text: string, note = ""): HTMLElement {
  const turn = make("div", `turn ${role}`, make("p", "said", text), make("small", "soft", note));
  log.append(turn);
  log.scrollTop = log.scrollHeight;
  ideas.hidden = true;
  return turn;
}

function showInstance({ status, statusReason, billing }: Instance): void {
  const running = status === "running";
  const reason = statusReason === null ? "" : ` (${statusReason.replaceAll("_", " ")})`;
  const price = running ? ` · ${money(billing.pricePerHour)} ${billing.currency} an hour` : " · costs nothing";
  state.textContent = `${status}${reason}${price}`;
  state.dataset.status = status;
  power.textContent = running ? "Stop" : "Start";
  power.dataset.verb = running ? "stop" : "start";
  power.setAttribute("aria-label", `${power.textContent} the instance`);
}
