import { z } from "zod";
import { parseFileName, refuseClash } from "../agents/file-name.ts";
import { AppError } from "../lib/app-error.ts";
import type { SkillChoice } from "./skills.ts";

const MAX_FILES = 64;
const MAX_FILE_BYTES = 256 * 1024;

const NAME_FORM = "the name of a skill of the catalog";
const FILES_FORM = `an object of 1 to ${MAX_FILES} file names, SKILL.md among them, each with its text`;
const TEXT_FORM = `text of at most ${MAX_FILE_BYTES} bytes`;

const fileText = z
  .string({ error: TEXT_FORM })
  .refine((text) => text.isWellFormed() && Buffer.byteLength(text) <= MAX_FILE_BYTES, { error: TEXT_FORM });

export const SkillInput = z.object({
  name: z.string({ error: NAME_FORM }).min(1, { error: NAME_FORM }).optional(),
  files: z
    .record(z.string(), fileText, { error: FILES_FORM })
    .refine((files) => Object.hasOwn(files, "SKILL.md") && Object.keys(files).length <= MAX_FILES, {
      error: FILES_FORM,
    })
    .optional(),
});

/** What is to be installed. Throws `invalid_request` for both or neither, and for file names that no workspace takes. */
export function skillChoice({ name, files }: z.output<typeof SkillInput>): SkillChoice {
  if ((name === undefined) === (files === undefined)) {
    throw new AppError("invalid_request", "body: expected either name or files");
  }
  if (name !== undefined) return { name };
  const texts = new Map(Object.entries(files ?? {}));
  for (const path of texts.keys()) parseFileName(path, "files");
  refuseClash([], texts.keys(), "files");
  return { files: texts };
}
