#!/usr/bin/env python3
"""Writes the training corpus of the bundled model to standard output.

Original text: questions and answers about memory, language models and animals, and short
stories, composed from the tables below. The output is deterministic. <user>, <reply> and
<stop> are tokens of the model's vocabulary.
"""
import sys

SIZE = 300_000  # characters

# Topic, as in a question: sentences of the answer. The first is always used, then one to
# three of the others, in order.
TOPICS = {
    "memory": ["Memory is the place where a computer keeps the data it works on.",
               "It is made of many small cells, and every cell has an address.",
               "A program reads and writes memory all the time.",
               "Fast memory is small, and big memory is slow."],
    "a cache": ["A cache is a small and fast memory that keeps copies of data used a short time ago.",
                "When the data is found there, it is called a hit.",
                "When the data is not there, it is called a miss, and the slower memory must be read.",
                "A good cache saves a lot of time."],
    "a cache line": ["A cache line is the smallest piece of data that a cache moves.",
                     "On most machines it is sixty four bytes long.",
                     "If you read one byte, the whole line comes with it."],
    "a page": ["A page is a block of memory of a fixed size.",
               "Most pages are four kilobytes long.",
               "The system maps each page to a frame of the real memory."],
    "a page fault": ["A page fault happens when a program touches a page that is not in memory.",
                     "The system stops the program for a moment and brings the page in.",
                     "A minor fault finds the page in memory, but a major fault must read the disk.",
                     "Many major faults make a program very slow."],
    "the heap": ["The heap is the part of memory where a program asks for space while it runs.",
                 "The space stays until the program gives it back.",
                 "If it is never given back, memory leaks away."],
    "the stack": ["The stack is the part of memory that holds the local values of functions.",
                  "It grows with each call and shrinks with each return.",
                  "It is fast because its top is always in the cache."],
    "a register": ["A register is a tiny memory inside the processor.",
                   "It is the fastest memory of all.",
                   "A processor has only a few of them."],
    "RAM": ["RAM is the main memory of a computer.",
            "It can be read in any order, and it forgets everything when the power goes off.",
            "When a model is larger than the RAM, parts of it must come from the disk."],
    "a disk": ["A disk keeps files when the power is off.",
               "It is much larger than memory and much slower.",
               "A model file rests on the disk until it is loaded."],
    "a byte": ["A byte is eight bits.",
               "It can hold a number from zero to two hundred and fifty five.",
               "Memory is counted in bytes."],
    "an address": ["An address is the number of a place in memory.",
                   "Each byte has its own address.",
                   "The same address can mean different places in different programs."],
    "a pointer": ["A pointer is a value that holds an address.",
                  "A program follows it to find the data.",
                  "A wrong pointer leads to the wrong place, and the program may stop."],
    "virtual memory": ["Virtual memory gives each program its own view of memory.",
                       "The system decides which pages are really there.",
                       "So a program can use more memory than the machine has."],
    "a mapped file": ["A mapped file is a file that looks like memory.",
                      "Its pages are read from the disk when they are touched for the first time.",
                      "Many programs load the weights of a model this way."],
    "swap": ["Swap is space on the disk for pages that do not fit in memory.",
             "It saves the program, but it is slow.",
             "If a machine swaps all the time, it needs more memory."],
    "a buffer": ["A buffer is a piece of memory that holds data for a short time.",
                 "One part of the program fills it, and another part empties it."],
    "bandwidth": ["Bandwidth is how much data can be moved in one second.",
                  "A large model reads all its weights for each token, so bandwidth sets its speed."],
    "latency": ["Latency is the time you wait for the first piece of data.",
                "A register answers at once, memory is slower, and the disk is slowest."],
    "prefetching": ["Prefetching means to load data before it is needed.",
                    "If the guess is right, nobody has to wait.",
                    "If the guess is wrong, time and bandwidth are lost."],
    "locality": ["Locality means that a program often uses the same data again, or data close to it.",
                 "Caches work well because of locality."],
    "a thread": ["A thread is one line of work in a program.",
                 "Several threads can work at the same time and share the same memory.",
                 "They must take turns when they write to the same place."],
    "a process": ["A process is a program that runs.",
                  "It has its own memory and one or more threads."],
    "a lock": ["A lock lets only one thread at a time into a part of the program.",
               "It keeps the data safe, but the others have to wait."],
    "a language model": ["A language model is a program that guesses the next word of a text.",
                         "It has learned from many examples.",
                         "It reads the text so far, and it writes one token at a time."],
    "a token": ["A token is a small piece of text that a model reads or writes.",
                "It can be a word, a part of a word, or a single letter.",
                "Each token has a number."],
    "a tokenizer": ["A tokenizer cuts a text into tokens.",
                    "It also puts the tokens together again to make a text."],
    "a layer": ["A layer is one step of the work of a model.",
                "Most layers have two parts: attention and a feed forward network.",
                "The output of one layer is the input of the next layer."],
    "attention": ["Attention lets a model look back at the words that came before.",
                  "Each word asks a question, and the other words answer with keys and values.",
                  "The words that fit best get the most weight."],
    "a head": ["A head is one part of the attention of a layer.",
               "Each head can look at different words."],
    "a weight": ["A weight is a number that the model has learned.",
                 "A model has millions of weights, or even billions.",
                 "They do not change while the model answers."],
    "a tensor": ["A tensor is a block of numbers with a shape.",
                 "A list is a tensor with one dimension, and a matrix is a tensor with two.",
                 "The weights of a model are stored as tensors."],
    "a matrix": ["A matrix is a table of numbers with rows and columns.",
                 "Most of the time of a model goes into multiplying matrices."],
    "an embedding": ["An embedding is a list of numbers that stands for a token.",
                     "Tokens with a similar meaning have similar numbers."],
    "quantization": ["Quantization stores weights with fewer bits.",
                     "The model gets smaller and faster, and it loses only a little quality.",
                     "A block of weights shares one scale."],
    "the KV cache": ["The KV cache keeps the keys and values of all tokens so far.",
                     "Without it the model would have to compute them again for every new token.",
                     "It grows with the length of the text."],
    "an expert": ["An expert is one of several feed forward networks in a layer.",
                  "For each token only a few experts work.",
                  "So a large model can be fast, but all of its experts need memory."],
    "a router": ["A router chooses the experts for a token.",
                 "It gives each expert a score, and the best ones do the work."],
    "a prompt": ["A prompt is the text that you give to a model.",
                 "The model reads the whole prompt first, and then it starts to write."],
    "the context": ["The context is all the text that a model can see at one time.",
                    "When the context is full, the model cannot take more tokens."],
    "sampling": ["Sampling is the choice of the next token.",
                 "The model gives every token a chance, and one of them is drawn."],
    "temperature": ["The temperature says how bold the choice of the next token is.",
                    "With a low temperature the model is careful, and with a high one it is wild."],
    "softmax": ["Softmax turns a list of scores into chances that add up to one.",
                "The highest score gets the largest chance."],
    "training": ["Training is how a model learns.",
                 "It reads many examples, it makes errors, and its weights change a little each time.",
                 "After many steps the errors are small."],
    "a gradient": ["A gradient tells in which direction a weight should change.",
                   "Training follows the gradient down to a smaller error."],
    "a trace": ["A trace is a record of what a program did.",
                "It lists each step with its time.",
                "With a trace you can see which memory a model touched, and when."],
    "a benchmark": ["A benchmark measures how fast a program is.",
                    "A fair benchmark runs many times and tells the spread."],
    "a graph": ["A graph is a plan of the work of a model.",
                "Each node is one operation, and each edge carries a tensor.",
                "The graph of one token is almost the same as the graph of the next."],
}

# name: (plural, home, food, size, can do, sound or habit)
ANIMALS = {
    "fox": ("foxes", "in the forest", "mice and berries", "as big as a small dog", "hear a mouse under the snow", "barks at night"),
    "owl": ("owls", "in old trees", "mice", "as tall as a book", "fly without a sound", "calls in the dark"),
    "bear": ("bears", "in the mountains", "fish, roots and honey", "very big", "climb trees", "sleeps all winter"),
    "rabbit": ("rabbits", "in holes under the meadow", "grass and leaves", "small", "run very fast", "thumps on the ground when there is danger"),
    "whale": ("whales", "in the sea", "tiny shrimps", "longer than a house", "dive very deep", "sings under the water"),
    "frog": ("frogs", "near ponds", "flies", "as small as a hand", "jump far", "croaks in spring"),
    "mouse": ("mice", "in fields and houses", "seeds and cheese", "tiny", "hide in a small hole", "squeaks"),
    "horse": ("horses", "on wide fields", "grass and hay", "taller than a man", "run all day", "sleeps on its feet"),
    "cat": ("cats", "with people", "fish and mice", "small and soft", "see in the dark", "purrs when it is happy"),
    "dog": ("dogs", "with people", "meat and bones", "small or large", "find things by their smell", "barks at strangers"),
    "duck": ("ducks", "on lakes and rivers", "plants and snails", "as big as a hen", "swim and fly", "quacks"),
    "wolf": ("wolves", "in wild forests", "deer", "like a large dog", "walk far in the snow", "howls at the moon"),
    "bee": ("bees", "in a hive", "nectar", "as small as a bean", "find flowers and tell the others", "hums"),
    "turtle": ("turtles", "in ponds and on beaches", "plants and small fish", "as round as a plate", "live for a hundred years", "hides in its shell"),
    "elephant": ("elephants", "on the plains", "leaves and fruit", "the largest animal on land", "remember a place for years", "calls with its trunk"),
    "crow": ("crows", "in the tops of trees", "seeds, worms and bread", "as big as a loaf of bread", "solve hard riddles", "hides its food and remembers the places"),
    "squirrel": ("squirrels", "in trees", "nuts", "small with a big tail", "jump from tree to tree", "buries nuts and forgets some of them"),
    "penguin": ("penguins", "on the ice", "fish", "as tall as a child", "swim like a fish", "walks in long lines"),
    "snail": ("snails", "in gardens", "green leaves", "very small", "carry its house", "comes out when it rains"),
    "hedgehog": ("hedgehogs", "under hedges", "beetles and worms", "like a round ball", "roll itself up", "walks at night"),
}

NAMES = ["Mira", "Tom", "Lena", "Oskar", "Pia", "Finn", "Nora", "Emil", "Ada", "Hugo", "Ruby", "Max"]
PLACES = ["by the river", "near a quiet lake", "at the edge of the forest", "in a green valley",
          "on a small hill", "behind an old mill"]
WEATHER = ["One sunny morning", "One cold evening", "On a rainy day", "Early in spring",
           "One windy night", "At the end of summer"]
LOST = [("a golden key", "it"), ("a red ball", "it"), ("a small blue stone", "it"),
        ("an old map", "it"), ("a silver bell", "it"), ("a warm hat", "it")]
WHERE = ["under a big stone", "in a hollow tree", "between the roots of an oak",
         "at the bottom of the pond", "behind the old wall", "in the tall grass"]
FEEL = ["sad", "worried", "tired", "a little afraid"]
END = ["From that day on they were good friends.", "They laughed and walked home together.",
       "Then they shared some food and looked at the stars.",
       "And they never forgot that day.", "That night they both slept well."]
LESSON = ["It is good to ask for help.", "Two can find what one cannot see.",
          "A good memory is worth a lot.", "Who looks slowly sees more.",
          "A friend is better than gold."]

ASK = ["What is {}?", "What is {}?", "Tell me about {}.", "Explain {}.", "Can you explain {}?",
       "What do you know about {}?", "what is {}", "Please explain {}."]

GREETINGS = [
    (["Hello!", "Hi!", "Hello", "hi", "hello", "Good morning!"],
     "Hello! I am a very small language model. You can ask me about memory, models or animals."),
    (["Who are you?", "What are you?", "who are you", "What is your name?"],
     "I am a very small language model. I was trained on short texts about memory, models and animals."),
    (["How are you?", "how are you"], "I am fine, thank you. All my weights are in place."),
    (["What can you do?", "Help", "help", "What do you know?"],
     "I can explain words like cache, page fault, token or attention, I know some animals, and I can tell a short story."),
    (["Thank you!", "Thanks!", "thank you", "thanks"], "You are welcome! Ask me again any time."),
    (["Goodbye!", "Bye!", "bye"], "Goodbye! Have a nice day."),
]

# Questions that the model cannot answer.
UNKNOWN = ["What is the capital of France?", "How old is the moon?", "Who won the game?",
           "What is two plus three?", "Can you write code?", "Why is the sky blue?",
           "How does a car work?", "What time is it?", "Where is my key?", "What should I cook?",
           "How do I get to the station?", "Who wrote this book?", "When does the train leave?",
           "How does music work?", "Why do we dream?", "Which phone should I buy?",
           "What is the best color?", "Do you like me?", "How many people live on earth?",
           "Please write a poem.", "Translate this text.", "What is the weather like?"]
NO_ANSWER = "I do not know that. Ask me about memory, models or animals."


class Picker:
    """A deterministic pseudo-random generator, the same on every Python version."""

    def __init__(self, seed):
        self.state = seed

    def below(self, n):
        self.state = (self.state * 6364136223846793005 + 1442695040888963407) % 2**64
        return (self.state >> 33) % n

    def one(self, items):
        return items[self.below(len(items))]


def article(noun):
    return ("an " if noun[0] in "aeiou" else "a ") + noun


def turn(question, answer):
    return f"<user>{question}<reply>{answer}<stop>"


def topic_turn(pick):
    topic = pick.one(list(TOPICS))
    first, *more = TOPICS[topic]
    start = pick.below(2) if len(more) > 2 else 0
    return turn(pick.one(ASK).format(topic), " ".join([first] + more[start:start + 1 + pick.below(3)]))


def animal_turn(pick):
    name = pick.one(list(ANIMALS))
    plural, home, food, size, can, habit = ANIMALS[name]
    a = article(name)
    facts = [f"{plural.capitalize()} live {home}.", f"They eat {food}.",
             f"{a.capitalize()} is {size}.", f"It can {can}.", f"{a.capitalize()} {habit}."]
    return pick.one([
        lambda: turn(pick.one([f"What do {plural} eat?", f"What does {a} eat?", f"what do {plural} eat"]),
                     f"{plural.capitalize()} eat {food}."),
        lambda: turn(pick.one([f"Where do {plural} live?", f"Where does {a} live?"]),
                     f"{plural.capitalize()} live {home}."),
        lambda: turn(pick.one([f"How big is {a}?", f"How large is {a}?"]), f"{a.capitalize()} is {size}."),
        lambda: turn(pick.one([f"What can {a} do?", f"What can {plural} do?"]),
                     f"{a.capitalize()} can {can}. It {habit}."),
        lambda: turn(pick.one([f"Tell me about {plural}.", f"What is {a}?", f"Tell me about the {name}.",
                               f"What do you know about {plural}?"]), " ".join(facts)),
    ])()


def story(pick):
    hero, friend = pick.one(list(ANIMALS)), pick.one(list(ANIMALS))
    name, other = pick.one(NAMES), pick.one(NAMES)
    while friend == hero:
        friend = pick.one(list(ANIMALS))
    while other == name:
        other = pick.one(NAMES)
    thing, it = pick.one(LOST)
    short = thing.split(" ", 1)[1]
    parts = [
        pick.one([f"Once there was {article(hero)} called {name} who lived {pick.one(PLACES)}.",
                  f"{name} was a young {hero}. {name} lived {pick.one(PLACES)}.",
                  f"Once upon a time a {hero} named {name} lived {pick.one(PLACES)}."]),
        pick.one([f"{pick.one(WEATHER)} {name} lost {thing} and was {pick.one(FEEL)}.",
                  f"{pick.one(WEATHER)} {name} could not find {thing} any more."]),
        pick.one([f"{name} looked everywhere, but the {short} was gone.",
                  f"{name} searched the whole day and did not find the {short}."]),
        pick.one([f"Then {article(friend)} named {other} came along.",
                  f"Then {name} met {other}, {article(friend)}."]),
        pick.one([f'"Why are you {pick.one(FEEL)}?" asked {other}.', f'"Can I help you?" asked {other}.',
                  f'"What are you looking for?" said {other}.']),
        pick.one([f'"I have lost {thing}," said {name}.', f'"I cannot find my {short}," said {name}.']),
        pick.one([f"{other} thought for a while and said: \"Let us go back the way you came.\"",
                  f"{other} remembered a shiny thing {pick.one(WHERE)}.",
                  f"{other} had a good memory and knew every path."]),
        f"They looked together, and soon they found {it} {pick.one(WHERE)}.",
        pick.one(END), pick.one(LESSON),
    ]
    text = " ".join(parts)
    if pick.below(3) == 0:
        return text + "<stop>"
    return turn(pick.one([f"Tell me a story about {article(hero)}.", "Tell me a story.",
                          f"Tell me a story about {article(hero)}.", f"Write a story about {article(hero)}.",
                          f"Tell me a short story about {article(hero)} and {article(friend)}."]), text)


def greeting_turn(pick):
    questions, answer = pick.one(GREETINGS)
    return turn(pick.one(questions), answer)


def unknown_turn(pick):
    return turn(pick.one(UNKNOWN), NO_ANSWER)


def main():
    pick = Picker(7)
    kinds = [topic_turn] * 9 + [animal_turn] * 5 + [story] * 4 + [greeting_turn] * 3 + [unknown_turn]
    written = 0
    while written < SIZE:
        written += sys.stdout.write(pick.one(kinds)(pick))


if __name__ == "__main__":
    main()
