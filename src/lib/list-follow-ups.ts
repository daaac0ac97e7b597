/** Messages that go on with the list before: "And eggs", "Put it back", "The one in home". English only. */
import { type Before, LEAD } from "./follow-up-forms.ts";
import { TEXT_FILE } from "./questions.ts";

/** As it is asked where a list or file is called by what fits several (models/local/tools/file-steps.ts). */
const WHICH = /^(?:Which one do you mean: |Do you mean )(?<names>[^?\n]+)\?/;
const OWN_FILE =
  /\b(?:my|the|our|your) (?:(?!(?:my|the|our|your|to|on|onto|in|into|from|off)\b)[\w-]+ ){0,3}(?:lists?|to-?dos?|tasks|groceries|errands|files?|notes?|recipes?|documents?)\b(?: (?:of|for|about) [\w-]+)?/i;

const BESIDE_NAME = /^(?:i mean )?(?:the )?(?:one (?:in|called) )?|(?: one)?(?:,? please)?[.!]*$/g;
const YES = /^(?:yes|yeah|yep|ok|okay|sure|that)$/;

/** "Add milk to home/shopping.md", for "home/shopping.md" after "Add milk to my list" and the question which one is meant */
export function chosen(text: string, { asked, answered }: Before): string | null {
  const names = WHICH.exec(answered)?.groups?.names?.split(", ") ?? [];
  const said = text.toLowerCase().replace(BESIDE_NAME, "");
  const whole = names.filter((one) => one.toLowerCase() === said || (names.length === 1 && YES.test(said)));
  const [file, ...others] =
    whole.length > 0 ? whole : names.filter((one) => one.toLowerCase().split("/").includes(said));
  return file === undefined || others.length > 0 || !OWN_FILE.test(asked) ? null : asked.replace(OWN_FILE, () => file);
}

/** A list or a file that something was put on, taken off or checked off. */
const WHERE = "(?<where>(?:my|the|our|your) .*|\\S+\\.\\w+)$";
const CHANGES = [
  { verb: "check off", after: "on", asked: `(?:check|tick|cross) off (?<item>.+?) (?:on|in|from) ${WHERE}` },
  {
    verb: "remove",
    after: "from",
    asked: `(?:remove|delete|take|cross|strike|drop) (?<item>.+?) (?:from|off|out of) ${WHERE}`,
  },
  { verb: "add", after: "to", asked: `(?:add|put|append) (?<item>.+?) (?:to|on|onto) ${WHERE}` },
].map(({ asked, ...one }) => ({ ...one, asked: new RegExp(`(?:^|[.!?,]\\s+)${LEAD.slice(1)}${asked}`, "is") }));
const MORE =
  /^(?:and|also|plus|add)(?:,? (?:also|add|put))*,? (?<items>[^?.!:]{1,60}?)(?:,? (?:too|as well|please|thanks|thank you))*[.!]*$/i;
/** "My phone is broken", "now show me the list", "read it to me": the message is about something else. */
const NO_ITEMS =
  /^(?:i|i['’]\w+|my|our|we|you|your|he|she|it|its|they|this|that|these|those|there|here|what|which|who|whose|where|when|why|how|now|then|so|if|because|but|yes|no|not|never|ok|okay|hello|hi|hey|bye|good(?:bye| (?:morning|day|evening|night))|please|sorry|thanks|thank|thx|cheers|to|on|onto|in|into|can|could|will|would|should|do|does|did|is|are|was|were|have|has|let|let['’]s|delete|show|display|list|explain|(?:check|tick|cross) off|\p{L}+ (?:me|us|it|them|that|this|him|her))\b/iu;
/** Their items are things, so a verb begins a request: "and write a poem". On a list of tasks, it begins a task. */
const OF_THINGS = /\b(?:shopping|grocer\w*|packing|guests?|wish|presents?|gifts?)\b/i;
const VERBS =
  /^(?:tell|say|write|make|create|read|open|find|search|look|call|send|book|order|buy|play|draw|check|mark|tick|take|move|change|replace|rename|clear|empty|sort|save|store|remind|remember|forget|note|give|translate|describe|summari[sz]e|help|try|go|come)\b/i;
const REMOVES =
  /^(?:(?:remove|delete|drop|take (?:off|out)) (?<item>[^?.!:]{1,60}?)|take (?<taken>[^?.!:]{1,60}?) (?:off|out))(?: again)?$/i;
const CHECKS = /^(?:check|tick|cross) off (?<item>.+)$/i;
const ADDS = /^(?:(?:and|also|plus|now|then),? )*(?:also )?(?:add|put)\b/i;
const AND = /^(?:(?:and|also|plus|now|then),? )+/i;
const IT = "(?:it|that|them|those)";
const BACK = new RegExp(`^(?:put|bring|add) ${IT} (?:back|again)(?: on)?$`, "i");
const REMOVES_IT = new RegExp(`^(?:remove ${IT}|take ${IT} (?:off|out|back))(?: again)?$`, "i");
/** No item of a list, but all of it, or something else. */
const WHOLE = new RegExp(
  `^${IT}$|\\b(?:everything|all|lists?|files?|notes?|recipes?|documents?)\\b|\\w${TEXT_FILE}\\b|\\b(?:from|off|on|in)\\b`,
  "i",
);

/**
 * "Add eggs to my shopping list", for "And eggs" after "Add milk to my shopping list"; "Remove the bread from it" for
 * "And the bread" after "Take the milk off it", and "Add the milk to it" for "Put it back".
 */
export function listed(text: string, { asked }: Before): string | null {
  const before = asked.replace(/[\s.!]*$/, "");
  const change = CHANGES.find((one) => one.asked.test(before));
  if (change === undefined || CHANGES.some((one) => one.asked.test(text.replace(/[\s.!]*$/, "")))) return null;
  const { item = "", where = "" } = change.asked.exec(before)?.groups ?? {};
  const doing = (verb: string, items: string) => {
    const { after = "" } = CHANGES.find((one) => one.verb === verb) ?? {};
    return `${verb.charAt(0).toUpperCase()}${verb.slice(1)} ${items} ${after} ${where}`;
  };
  const rest = text.replace(/(?:,? (?:too|as well|please|thanks|thank you))*[\s.!]*$/i, "").replace(AND, "");
  if (change.verb === "remove" && BACK.test(rest)) return doing("add", item);
  if (change.verb === "add" && REMOVES_IT.test(rest)) return doing("remove", item);
  const removed = REMOVES.exec(rest)?.groups;
  const other = removed?.item ?? removed?.taken;
  if (other !== undefined) return WHOLE.test(other) ? null : doing("remove", other);
  const items = MORE.exec(text)?.groups?.items;
  if (items === undefined) return null;
  const checked = CHECKS.exec(items)?.groups?.item;
  if (checked !== undefined) return doing("check off", checked);
  if (NO_ITEMS.test(items) || (OF_THINGS.test(where) && VERBS.test(items))) return null;
  return doing(ADDS.test(text) ? "add" : change.verb, items);
}
