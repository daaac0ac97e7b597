import { z } from "zod";

/** What a `tool_choice` says, in either of OpenAI's forms. */
export interface ToolChoice {
  /** `required`: one of them must be called. `named`: that one, and OpenAI's clients are not told that it was a choice. */
  mode: "auto" | "none" | "required" | "named";
  /** The names of the only functions that may be called; null for all. */
  only: string[] | null;
}

const CHOICE =
  "auto, none, required, one of the functions by its name, or allowed_tools with a mode and such functions";

/** One function has its name where each surface says, and so have the allowed ones. */
export const toolChoiceOf = <N extends z.ZodType, A extends z.ZodType>(named: N, allowed: A) =>
  z.union([z.enum(["auto", "none", "required"]), named, allowed], { error: CHOICE });

export const allowedTools = <N extends z.ZodType>(named: N) => ({
  mode: z.enum(["auto", "required"]),
  tools: z.array(named).min(1),
});
