import { z } from "zod";

/**
 * A list that is checked up to its first wrong element. Errors are kept until the end of the body: those of a megabyte of
 * wrong elements would hold everybody up for seconds.
 */
export const untilFirstWrong = <S extends z.ZodArray<z.ZodType>>(list: S) =>
  // As any list, it is required unless it says otherwise.
  z.nonoptional(
    z.preprocess((given) => {
      if (!Array.isArray(given)) return given;
      const wrong = given.findIndex((one) => !list.element.safeParse(one).success);
      return wrong < 0 ? given : given.slice(0, wrong + 1);
    }, list),
  );
