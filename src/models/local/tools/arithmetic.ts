/** Works out what a message calculates, where no script may be run for it. */
import { sumIn } from "./expression.ts";
import { formulaIn } from "./formula.ts";
import { tell } from "./tell.ts";

/** "12 × 14 = 168." for "What is 12 times 14?"; null if the message is no calculation. */
export function calculationOf(message: string): string | null {
  const code = formulaIn(message)?.code ?? sumIn(message);
  if (code === null) return null;
  const output = `result: ${JSON.stringify(evaluate(code))}`;
  const told = tell({ name: "run_javascript", input: JSON.stringify({ code }), output, isError: false }, message);
  return told.replace(/\.?$/, ".");
}

const TOKEN = /Math\.sqrt|\d+(?:\.\d+)?|\*\*|[-+*/()]/g;

/** Of numbers with `+ - * / **`, brackets and `Math.sqrt`, as JavaScript would compute it. */
export function evaluate(code: string): number {
  const tokens = code.match(TOKEN) ?? [];
  let at = 0;
  const isNext = (...signs: string[]): boolean => signs.includes(tokens[at] ?? "");
  const take = (): string => tokens[at++] ?? "";

  function sum(): number {
    let value = product();
    while (isNext("+", "-")) value = take() === "+" ? value + product() : value - product();
    return value;
  }
  function product(): number {
    let value = power();
    while (isNext("*", "/")) value = take() === "*" ? value * power() : value / power();
    return value;
  }
  function power(): number {
    const base = term();
    if (!isNext("**")) return base;
    take();
    return base ** power();
  }
  function term(): number {
    const token = take();
    if (token === "-") return -term();
    if (token === "Math.sqrt") return Math.sqrt(term());
    if (token !== "(") return Number(token);
    const value = sum();
    take(); // the closing bracket
    return value;
  }
  return sum();
}
