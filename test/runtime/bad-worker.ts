import { type HostToWorker, linesOf } from "../../src/runtime/protocol.ts";
import "../../src/runtime/worker.ts";

declare const self: Worker & { onmessage: (event: MessageEvent<string>) => void };

/** The worker's program, except that runs of certain agents fail: the agent's name says how. */
const { onmessage } = self;
self.onmessage = (event) => {
  const data = JSON.parse(linesOf(event.data)[0] ?? "") as HostToWorker;
  switch (data.type === "run" ? data.run.agentName : "") {
    case "exits":
      return process.exit(3);
    case "throws":
      throw new Error("out of order");
    case "rejects":
      return void Promise.reject(new Error("out of order"));
    case "lies":
      return self.postMessage(JSON.stringify({ type: "ready", protocol: 99 }));
    case "loops":
      for (;;);
    default:
      onmessage(event);
  }
};
