/** What no character of the model can do, and what it says when it is asked for that, or whether it has. English only. */
import { PLEASE } from "../../lib/questions.ts";

const NO_CLOCK = "I cannot watch the clock by myself, but you can plan a time for me under Schedules.";
const SET_TIME = "(?:an? |the |my )?(?:(?:daily|weekly|monthly|new|recurring) )?(?:timer|alarm|reminder)s?";

const REALLY = "(?:(?:really|actually|already|also|ever) )*";
const SENT = "sent|e-?mailed|ordered|booked|reserved|called|bought|scheduled|cancelled";
const NOT_KNOWN = "Not that I know: I cannot send, order, book or set up anything by myself.";

export const REFUSALS = [
  {
    deed: `(?:(?:remind|wake) (?:me|us|him|her|them)(?! (?:what|who|where|how|why|which|of))|(?:set|schedule)(?: up)? ${SET_TIME}|every (?:\\d+ )?(?:minutes?|hours?|days?|morning|evening|week|\\w+day),? (?:check|send|tell|remind|write|ping))\\b`,
    beginning: NO_CLOCK,
  },
  {
    deed: "(?:put|add|enter|write) .{1,60} (?:to|in|into|on) (?:my|the|our) calendar\\b",
    beginning:
      "I have no calendar. I can note it if you say “Remember that”, and you can plan a time for me under Schedules.",
  },
  {
    deed: "(?:search|browse|look on|google) (?:the |on the )?(?:web|internet|google|online|for)\\b|(?:open|visit|go to) (?:https?:|www\\.|[\\w-]+\\.(?:com|org|net|io|dev|de|uk)\\b)",
    beginning: "I cannot look at the web: I know what my model has learned, and what you tell me.",
  },
  {
    deed: "(?:play (?:some |me |a |my |the )*(?:music|songs?|videos?|playlist|radio)|(?:turn|switch) (?:the .{1,20} )?(?:on|off)|(?:call|phone|ring|text) (?:my|the|an?) |(?:send|forward) (?:(?!me\\b)\\w+ )?(?:an? |my |this |the )?(?:e-?mails?|messages?|texts?|letters?)\\b|e-?mail (?:my |the |our )?[\\w-]+ (?:that|about|to)\\b|(?:make|place) (?:phone )?calls?\\b|(?:order|book|buy|reserve) (?:me |us )?(?:an?|some|the|two|tickets?)\\b|cancel (?:my|the|our) (?:meeting|appointment|booking|reservation|order|subscription)\\b|take (?:a|an) (?:photo|picture|screenshot))",
    beginning: "I cannot do that: I can only write. Shall I write something for you?",
  },
  {
    deed: "(?:(?:no,? |wait,? |please )*(?:undo|revert)(?: (?:it|that|this|them|the (?:last )?(?:change|deletion)))?(?=\\W*$)|(?:no\\b.{0,40}[,.!] )?(?:please )?(?:bring|put) (?:it|that|this|them|(?:the|my) [^.?!]{1,30}) back(?=\\W*$)|bring back (?:it|that|(?:the|my) .{0,30}\\b(?:file|list|note|recipe)))",
    beginning: "I cannot undo what is done. Tell me what to write again, and into which file.",
  },
  {
    deed: "(?:(?:no|wait|not that|i mean(?:t)?|sorry),? )*the other (?:one|file|list|recipe|note)(?:,? i mean(?:t)?)?(?=\\W*$)",
    beginning: "I do not know which other one you mean: please say its name.",
  },
  { deed: `.{0,100}\\byou (?:${SENT})\\b.{0,60}\\bdid you\\b`, beginning: NOT_KNOWN },
  {
    deed: `(?:so )?did you ${REALLY}(?:send|e-?mail|order|book|reserve|call|buy|forward|remind|schedule|cancel|set (?:(?:that|it|this) up|up|(?:the|an?) (?:timer|alarm|reminder)))\\b`,
    beginning: NOT_KNOWN,
  },
  {
    deed: `(?:so )?did you ${REALLY}(?:delete|remove|save|store|write|add|put|take|change|rename|create|update|clear) (?:it|that|this|them|the|my)\\b`,
    beginning: "My files show what I have done: ask me to list them, or to show one.",
  },
].map(({ deed, beginning }) => ({ asked: new RegExp(`${PLEASE}(?:do you )?(?:${deed})`, "i"), beginning }));
