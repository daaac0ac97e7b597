import { z } from "zod";
import { isoTime } from "../lib/clock.ts";
import { idForm } from "../lib/forms.ts";
import { record } from "../lib/record.ts";
import { type Found, MEMORY_ORIGINS } from "./search/entry.ts";

/** A passage of an agent's memory as the API shows it (docs/contract/api.md, Memory). */
export const MemoryItem = record("MemoryItem", () =>
  z.object({
    source: z.enum(["file", "conversation"]),
    file: z.string().nullable().describe("Its name; null for a message"),
    fromLine: z.int().nullable().describe("The first of its lines, counted from 1"),
    toLine: z.int().nullable(),
    conversationId: idForm("conv").nullable().describe("Where it was said, or a run that wrote it ran"),
    messageId: idForm("msg").nullable(),
    text: z.string(),
    score: z.number().describe("From 0 to 1: how high it ranked among what was found"),
    origin: z.enum(MEMORY_ORIGINS).describe("Who wrote it; `untrusted` if that may be a stranger"),
    runId: idForm("run").nullable().describe("The run that said or wrote it, if it is known"),
    createdAt: z.string().meta({ format: "date-time" }),
  }),
);

export const MemoryFound = record("MemoryFound", () =>
  z.object({
    items: z.array(MemoryItem),
    degraded: z.string().nullable().describe("What could not be searched; null if everything was"),
  }),
);

export const showFound = (found: Found): z.output<typeof MemoryItem> => ({
  source: found.file === null ? "conversation" : "file",
  file: found.file,
  fromLine: found.fromLine,
  toLine: found.toLine,
  conversationId: found.conversationId,
  messageId: found.messageId,
  text: found.text,
  score: Math.round(found.score * 10_000) / 10_000,
  origin: found.origin,
  runId: found.runId,
  createdAt: isoTime(found.createdAt),
});
