/**
 * A separate host process: prints "answering" at the first words, then continues a long answer or, with `short`, is
 * done.
 */
import { chat, never, openLocalEngine } from "./local-setting.ts";

const { engine } = openLocalEngine();
const maxTokens = process.argv[2] === "short" ? 4 : 1_900;
for await (const _ of engine.stream(chat("Tell me about the sea.", { maxTokens }), never)) console.log("answering");
