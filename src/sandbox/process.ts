/** The program of the process that runs one script: `roost sandbox-script`. */
import { createInterpreter } from "./interpreter.ts";
import { type Frame, type Job, LIMITS } from "./protocol.ts";
import { workInSandbox } from "./stages.ts";

export const runScriptProcess = (startJson: string, sizes: number): Promise<never> =>
  workInSandbox(startJson, sizes, async () => {
    const interpreter = await createInterpreter();
    return (text, send) => {
      const job: Job = JSON.parse(text);
      const console = boundedConsole(send);
      const ending = interpreter.run(job, console.write);
      send({ ...ending, leftOut: console.leftOut() });
    };
  });

/** Sends lines while there is room for them. A script that writes too much still runs to its end. */
function boundedConsole(send: (frame: Frame) => void) {
  let room = LIMITS.consoleChars;
  let leftOut = 0;
  return {
    write(line: string): void {
      const text = line.slice(0, Math.max(0, room)).toWellFormed();
      leftOut += line.length - text.length;
      if (room > 0) send({ type: "console", text });
      room -= text.length + 1;
    },
    /** Characters. */
    leftOut: () => leftOut,
  };
}
