import { readableMessage } from "../failure.ts";
import { colours, printJson, say, sayBeside, terminalColumns } from "../output.ts";
import { checkBackups } from "./check-backups.ts";
import { checkDatabase, checkDisk } from "./check-data.ts";
import { checkAddedModels, checkAddress, checkClock, checkMail, checkModel, checkSandbox } from "./check-host.ts";
import { checkKept } from "./check-kept.ts";
import { checkKeys } from "./check-keys.ts";
import { checkFacilitator, checkRpc, checkWallet } from "./check-money.ts";
import { type DataOptions, readConfig } from "./data-folder.ts";
import { type Finding, fail } from "./finding.ts";

/** `roost doctor`: checks everything the server depends on, changes nothing, exits 1 if a check fails. */
export async function runDoctor({ json, ...options }: DataOptions & { json?: true }): Promise<void> {
  const { config } = readConfig(options);
  const checks: [name: string, check: () => Finding | Promise<Finding>][] = [
    ["database", () => checkDatabase(config)],
    ["kept", () => checkKept(config)],
    ["disk", () => checkDisk(config)],
    ["keys", () => checkKeys(config)],
    ["address", () => checkAddress(config)],
    ["sandbox", checkSandbox],
    ["model", () => checkModel(config)],
    ["models", () => checkAddedModels(config)],
    ["mail", () => checkMail(config)],
    ["rpc", () => checkRpc(config)],
    ["wallet", () => checkWallet(config)],
    ["facilitator", () => checkFacilitator(config)],
    ["backups", () => checkBackups(config)],
    ["clock", checkClock],
  ];
  const findings = [];
  for (const [check, look] of checks) {
    const { ok, detail, mend } = await Promise.resolve().then(look).catch(unexpected);
    findings.push({ check, ok, detail, mend });
    if (!json) print(check, { ok, detail, mend });
  }
  if (json) printJson(findings);
  if (findings.some(({ ok }) => !ok)) process.exitCode = 1;
}

/** Messages of thrown errors end with the fix, after the last semicolon. */
function unexpected(error: unknown): Finding {
  const words = readableMessage(error);
  const at = words.lastIndexOf("; ");
  return at < 0
    ? fail(words, "fix what the message names, then run this again")
    : fail(words.slice(0, at), words.slice(at + 2));
}

/** Where what was found starts: beside the check's name, or on a narrow terminal below it. */
const BESIDE = 19;
const BELOW = 6;
const NARROW = 72;

function print(check: string, { ok, detail, mend }: Finding): void {
  const mark = ok ? colours.green("ok  ") : colours.red("FAIL");
  const isNarrow = (terminalColumns() ?? NARROW) < NARROW;
  const column = isNarrow ? BELOW : BESIDE;
  const indent = " ".repeat(column);
  if (isNarrow) say(mark, `  ${check}`);
  sayBeside(isNarrow ? [indent] : [mark, `  ${check.padEnd(11)}  `], column, detail);
  if (mend !== null) sayBeside([indent], column, `→ ${mend}`, colours.yellow);
}
