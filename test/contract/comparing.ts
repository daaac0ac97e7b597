/**
 * Compares an example with a server's answer: the same members and the same values. Ids and times are compared by their
 * form, and so is the amount of a quote, whose last digits are random; `…` in a text stands for any text.
 */

/** What an example shows for values that are always new, and the form of such a value. */
const FORMS: readonly [shown: RegExp, told: (shown: string) => RegExp][] = [
  [/^[a-z]+_0190f5e2c4a87b3d8e1f6a2b4c5d7e9\d$/, (id) => new RegExp(`^${id.split("_")[0]}_[0-9a-f]{32}$`)],
  [/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/, () => /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/],
  [/^5\.00\d{4}$/, () => /^5\.00\d{4}$/],
];

const isLike = (shown: string, told: string): boolean => {
  const form = FORMS.find(([one]) => one.test(shown));
  if (form) return form[1](shown).test(told);
  const parts = shown.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[\\s\\S]*")}$`).test(told);
};

/** Where the two differ; empty if they are equal. */
export function differences(shown: unknown, told: unknown, at = "the answer"): string[] {
  if (Array.isArray(shown) && Array.isArray(told)) {
    if (shown.length !== told.length) return [`${at} has ${told.length} items, not ${shown.length}`];
    return shown.flatMap((one, index) => differences(one, told[index], `${at}[${index}]`));
  }
  if (isObject(shown) && isObject(told)) {
    const names = new Set([...Object.keys(shown), ...Object.keys(told)]);
    return [...names].flatMap((name) => {
      if (!Object.hasOwn(shown, name)) return [`${at} has a ${name} that is not shown`];
      if (!Object.hasOwn(told, name)) return [`${at} has no ${name}`];
      return differences(shown[name], told[name], `${at}.${name}`);
    });
  }
  const alike = typeof shown === "string" && typeof told === "string" ? isLike(shown, told) : shown === told;
  return alike ? [] : [`${at} is ${JSON.stringify(told)}, not ${JSON.stringify(shown)}`];
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
