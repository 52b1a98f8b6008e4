"""For scripts that tests run: calls that have to be refused."""
import regattarec


def fails(call):
    """Prints the refusal, or NO ERROR."""
    try:
        call()
    except (regattarec.Error, TypeError) as error:
        print(type(error).__name__, error)
    else:
        print("NO ERROR")
