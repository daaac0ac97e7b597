import { isoTime } from "../../lib/clock.ts";
import { printJson, printTable, shortTime } from "../output.ts";
import { type DataOptions, withData } from "./data-folder.ts";

/** `roost outbox`: mail kept here because no SMTP server is set, newest first. */
export function showOutbox(options: DataOptions & { json?: true }): Promise<void> {
  return withData(options, "refuse", ({ outbox }) => {
    const mails = outbox.list();
    if (options.json) printJson(mails.map((mail) => ({ ...mail, createdAt: isoTime(mail.createdAt) })));
    else
      printTable(
        ["TIME", "TO", "CODE", "SUBJECT"],
        mails.map(({ createdAt, to, code, subject }) => [shortTime(createdAt), to, code ?? "-", subject]),
        "The outbox is empty.",
        { shorten: ["TO", "SUBJECT"] },
      );
  });
}
