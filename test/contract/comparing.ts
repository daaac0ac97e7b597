/**
 * What an example shows beside what a server answered: the same members and the same values. Ids and times are compared by
 * their form, and so is the amount of a quote, whose last digits are drawn; `…` in a text stands for any text.
 */

const FORMS: readonly RegExp[] = [
  /^(acct|key|inst|agt|msg|run|inv|txn|invite)_[0-9a-f]{32}$/,
  /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/,
  /^5\.00\d{4}$/,
];

const isLike = (shown: string, told: string): boolean => {
  const form = FORMS.find((one) => one.test(shown));
  if (form) return form.test(told) && form.exec(shown)?.[1] === form.exec(told)?.[1];
  const parts = shown.split("…").map((part) => part.replaceAll(/[.*+?^${}()|[\]\\]/g, "\\$&"));
  return new RegExp(`^${parts.join("[\\s\\S]*")}$`).test(told);
};

/** Where the two differ, in words; empty where they are alike. */
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
