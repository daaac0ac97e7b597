import { createInterface } from "node:readline";
import { explain, Failure } from "../failure.ts";
import { colours, noteFailure, oneLine, say, sayText, terminalColumns } from "../output.ts";
import { wrapText } from "../word-wrap.ts";
import { ask, Interrupted } from "./answer.ts";
import { openAnswerView, QUIET_VIEW } from "./answer-view.ts";
import { openHistory } from "./chat-history.ts";
import { openTyping, type Typing } from "./chat-typing.ts";
import { type Client, RoostError } from "./client.ts";
import { openClient, type ServerOptions } from "./credentials.ts";
import { AGENT, type AgentRecord, findAgent, findConversation } from "./find.ts";
import { showRecentMessages } from "./recent-messages.ts";

const HELP = `  /clear  delete this conversation and start a new one
  /help   show this help
  /quit   leave (or Ctrl-D)
  Ctrl-C  stop the answer; press it again to leave
Enter sends what is in the line, also several lines that were pasted; Alt-Enter
begins a new line in it. What you send during an answer waits its turn, unseen.`;

/** Where a conversation is: its agent, and its id unless it is the default one. */
interface Place {
  client: Client;
  agent: AgentRecord;
  conversationId: string | undefined;
  typed: { instance: string; agent: string };
}

/** `roost chat INSTANCE AGENT`: a conversation on the terminal; elsewhere each line of standard input is a message. */
export async function chat(
  instance: string,
  given: string,
  { conversation, ...options }: ServerOptions & { conversation?: string },
): Promise<void> {
  const client = openClient(options);
  const agent = await findAgent(client, instance, given);
  const typed = { instance, agent: given };
  const found = conversation === undefined ? undefined : await findConversation(client, agent, conversation, typed);
  const place = { client, agent, conversationId: found?.conversationId, typed };
  if (process.stdin.isTTY && process.stdout.isTTY) await converse(place);
  else await answerLines(place);
}

async function converse(place: Place): Promise<void> {
  const history = openHistory();
  const typing = openTyping("you> ", history.entries);
  const name = place.agent.displayName;
  await showRecentMessages(place.client, place.agent, place.conversationId);
  greet(name);
  let leaveAtInterrupt = false;
  for (;;) {
    const typed = await typing.read();
    if (typed.kind === "end") return;
    if (typed.kind === "interrupt" && typed.isEmpty && leaveAtInterrupt) return;
    leaveAtInterrupt = typed.kind === "interrupt";
    if (typed.kind === "interrupt") {
      say(colours.dim("Press Ctrl-C again, or Ctrl-D, to leave."));
      continue;
    }
    const text = typed.text.trim();
    if (text === "") continue;
    history.add(text);
    if (text === "/quit") return;
    try {
      if (await obey(place, typing, text)) continue;
      leaveAtInterrupt = await typing.keepDuring(() => answer(place, name, typed.text));
      if (leaveAtInterrupt) typing.holdBack();
    } catch (error) {
      if (error instanceof Interrupted) return;
      // The conversation continues after an error that the user can do something about; any other ends the command.
      if (!(error instanceof Failure || error instanceof RoostError)) throw error;
      noteFailure(explain(error, place.typed).line ?? "");
      // What the server has not taken is there to be changed.
      typing.holdBack(error instanceof RoostError && error.status >= 400 ? typed.text : "");
    }
  }
}

function greet(name: string): void {
  const greeting = `${oneLine(name)} is listening. /help shows the commands, Ctrl-D leaves.`;
  for (const [at, line] of wrapText(greeting, terminalColumns() ?? 80).entries()) {
    const who = at === 0 && line.startsWith(`${name} `) ? name : "";
    say(colours.bold(who), colours.dim(line.slice(who.length)));
  }
}

/** Streams the answer. True if it was cancelled: then the next Ctrl-C leaves. Throws `Interrupted` and failures. */
async function answer({ client, agent, conversationId }: Place, name: string, message: string): Promise<boolean> {
  const { cancelled } = await ask(client, agent, messageTo(conversationId, message), openAnswerView(name));
  return cancelled;
}

/** Carries out a chat command such as /clear; false if the text is not a command. */
async function obey({ client, agent, conversationId }: Place, typing: Typing, text: string): Promise<boolean> {
  switch (text) {
    case "/help":
      sayText(HELP);
      return true;
    case "/clear":
      if (!(await typing.confirm("Delete this conversation with its messages?"))) {
        say(colours.dim("Nothing was changed."));
        return true;
      }
      await client.delete(`${AGENT}/messages`, { path: agent, query: { conversationId } });
      say(colours.dim("This is a new conversation."));
      return true;
    default:
      if (!/^\/\w+$/.test(text)) return false;
      say(colours.dim(`There is no command ${text}: /help shows the commands.`));
      return true;
  }
}

const messageTo = (conversationId: string | undefined, message: string) =>
  conversationId === undefined ? { message } : { message, conversationId };

/** For pipes: every line is a message, whatever it says, and standard output has only the text of each answer. */
async function answerLines({ client, agent, conversationId }: Place): Promise<void> {
  const lines = createInterface({ input: process.stdin, terminal: false });
  for await (const line of lines) {
    if (line.trim() === "") continue;
    const { reply, cancelled } = await ask(client, agent, messageTo(conversationId, line), QUIET_VIEW);
    if (reply !== null) sayText(reply.message);
    if (cancelled) throw new Failure("the answer was cancelled");
  }
}
