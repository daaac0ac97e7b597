/** The weight that an `Accept` header gives to a type or range by its name; null if that is not in it. */
function weightOf(accept: string, name: string): number | null {
  for (const entry of accept.toLowerCase().split(",")) {
    const [range, ...parameters] = entry.split(";").map((part) => part.trim());
    if (range !== name) continue;
    const weight = parameters.find((one) => one.startsWith("q="))?.slice(2);
    return weight === undefined ? 1 : Number(weight);
  }
  return null;
}

/** Whether the client asks for this type by its name, not only by a range. */
export const namesType = (accept: string | null, type: string): boolean => (weightOf(accept ?? "", type) ?? 0) > 0;

/** Whether the client takes this type: the most exact of its ranges counts, and no header takes every type (RFC 9110, 12.5.1). */
export function takesType(accept: string | null, type: string): boolean {
  if (accept === null) return true;
  const ranges = [type, type.replace(/\/.*/, "/*"), "*/*"];
  return (ranges.map((range) => weightOf(accept, range)).find((weight) => weight !== null) ?? 0) > 0;
}
