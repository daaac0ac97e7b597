/** Gives up its capabilities where the kernel refuses the call for that, as the filter of a systemd unit does. */
import { dropPrivileges, numberOf, openSystemCalls } from "../../src/sandbox/system-calls.ts";
import { refuseCalls } from "../support/refused-call.ts";

const call = openSystemCalls();
if (process.argv[2] === "without any") dropPrivileges(call);
refuseCalls(call, numberOf("capset"));

try {
  dropPrivileges(call);
  console.log("dropped");
} catch (error) {
  console.log(String(error));
}
