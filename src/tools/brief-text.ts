import { z } from "zod";
import { isLabel } from "../lib/label.ts";

/**
 * Text of 1 to `most` characters without the blanks around it. The model is not told these bounds, which it hardly ever
 * meets: descriptions of tools take up its context.
 */
export const briefText = (most: number) =>
  z
    .string()
    .trim()
    .refine((text) => text !== "" && text.length <= most, { error: `expected 1 to ${most} characters` });

/** The same in one line, without control characters. */
export const briefLabel = (most: number) =>
  briefText(most).refine(isLabel, { error: "expected one line without control characters" });
